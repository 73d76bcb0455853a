/**
 * Where the control groups of a process are. Linux has two kinds: the older one has a tree of folders for each
 * thing that is controlled, the newer one a single tree. Neither has a fixed place, so the kernel is asked.
 */
import { join, posix } from 'node:path';

export interface Hierarchy {
  readonly kind: 'older' | 'newer';
  /** Empty for the newer kind, where the folders themselves say it. */
  readonly controllers: readonly string[];
  /** Of the group that the process is in. */
  readonly folder: string;
}

/** From the texts of /proc/self/mountinfo and /proc/self/cgroup. */
export function readHierarchies(mounts: string, membership: string): Hierarchy[] {
  const paths = new Map<string, string>();
  for (const line of membership.split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers !== undefined && path !== undefined) paths.set(controllers, path);
  }
  return mounts.split('\n').flatMap((line) => {
    // The number of fields in the middle varies; a dash ends them.
    const [before = '', after = ''] = line.split(' - ');
    const [, , , root, point] = before.split(' ').map(unescaped);
    const [type, , options = ''] = after.split(' ');
    if (root === undefined || point === undefined || (type !== 'cgroup' && type !== 'cgroup2')) return [];
    const mounted = options.split(',');
    for (const [names, path] of paths) {
      const controllers = names === '' ? [] : names.split(',');
      const isIt =
        type === 'cgroup2'
          ? names === ''
          : names !== '' && controllers.every((name) => mounted.includes(name));
      const below = isIt ? pathBelow(root, path) : undefined;
      if (below === undefined) continue;
      const kind = type === 'cgroup' ? 'older' : 'newer';
      return [
        {
          kind,
          controllers,
          folder: below === '/' ? point : join(point, below),
        } as const,
      ];
    }
    return [];
  });
}

/** Undefined for a group outside what is mounted. */
function pathBelow(root: string, path: string): string | undefined {
  if (path.startsWith('/..')) return undefined;
  if (root === '/' || root === path) return root === path ? '/' : posix.normalize(path);
  return path.startsWith(`${root}/`) ? path.slice(root.length) : undefined;
}

/** Spaces and the like are written as octal numbers. */
function unescaped(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}
