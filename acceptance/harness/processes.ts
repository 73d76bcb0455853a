/** What Linux says about the processes of a service. */
import { readdirSync, readFileSync } from 'node:fs';

/** Everything that a process started and that still has it as an ancestor, without itself. */
export function descendantsOf(pid: number): number[] {
  const found = [pid];
  for (let at = 0; at < found.length; at += 1) {
    for (const thread of list(`/proc/${found[at]}/task`)) {
      const children = read(`/proc/${found[at]}/task/${thread}/children`);
      for (const child of children.split(' ')) if (child !== '') found.push(Number(child));
    }
  }
  return found.slice(1);
}

/** The processes that run the code of Node tasks, and the sandboxes around them. */
export function taskProcessesOf(servicePid: number): number[] {
  return descendantsOf(servicePid).filter((pid) => commandOf(pid).includes('bootstraps/node.mjs'));
}

/** The command line of a process with spaces between its words; empty when it is gone. */
export function commandOf(pid: number): string {
  return read(`/proc/${pid}/cmdline`).split('\0').join(' ').trim();
}

/** How many processes of this host have a text in their command line. */
export function running(text: string): number {
  return list('/proc').filter((name) => /^\d+$/.test(name) && commandOf(Number(name)).includes(text)).length;
}

/** False when it had ended already. */
export function killAtOnce(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}

/** A process may end while it is looked at: what is gone reads as empty. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
