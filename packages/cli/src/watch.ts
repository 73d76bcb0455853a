import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Editors save in several steps. */
const settleMilliseconds = 150;
/** The times of files are coarser than the clock. */
const timeSlack = 20;

/**
 * Calls back when one of some files is saved, one call at a time, until the signal ends it. The call answers
 * which files to look at from then on. Folders are watched, since an editor may put a new file in the place
 * of an old one; only those that have one of the files, since others may be large or change all the time.
 * `since` is when the first files were begun to be read: one that was saved after that counts as saved.
 */
export function watchFiles(
  first: readonly string[],
  saved: () => Promise<readonly string[]>,
  signal: AbortSignal,
  since = Date.now(),
): Promise<void> {
  return new Promise((resolve) => {
    const watchers = new Map<string, FSWatcher>();
    let files = new Map<string, Set<string>>();
    let timer: NodeJS.Timeout | undefined;
    let working = Promise.resolve();
    const look = (paths: readonly string[], began: number) => {
      files = new Map();
      for (const path of paths) {
        const names = files.get(dirname(path)) ?? new Set();
        files.set(dirname(path), names.add(basename(path)));
      }
      for (const [folder, watcher] of watchers) {
        if (files.has(folder)) continue;
        watcher.close();
        watchers.delete(folder);
      }
      for (const folder of files.keys()) {
        if (watchers.has(folder) || signal.aborted) continue;
        try {
          const watcher = watch(folder, (_event, name) => {
            if (name !== null && files.get(folder)?.has(name) === true) schedule();
          });
          watcher.on('error', () => watcher.close());
          watchers.set(folder, watcher);
        } catch {
          // A folder that is gone is looked for again after the next save.
        }
      }
      // What was saved while nobody watched yet.
      if (paths.some((path) => savedAt(path) > began - timeSlack)) schedule();
    };
    const schedule = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        working = working.then(async () => {
          const began = Date.now();
          if (!signal.aborted) look(await saved(), began);
        });
      }, settleMilliseconds);
    };
    const end = () => {
      clearTimeout(timer);
      for (const watcher of watchers.values()) watcher.close();
      void working.finally(resolve);
    };
    if (signal.aborted) return end();
    signal.addEventListener('abort', end, { once: true });
    look(first, since);
  });
}

function savedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
