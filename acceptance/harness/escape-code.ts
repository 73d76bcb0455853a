/** Code of tasks that mean harm. */
import type { Files } from './tasks.ts';

/** Tries one thing after the other with what Node itself has, and answers how each was refused. */
export const nodeProber: Files = {
  'index.mjs': `
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
const read = (...parts) => fs.readFileSync(path.join(...parts));
const tries = {
  'reads /etc/passwd': ({ passwd }) => { const text = String(read('/etc/passwd')); if (text === passwd) return text; throw Object.assign(new Error(), { code: 'another file' }); },
  'lists the root of the host': () => fs.readdirSync('/root'),
  'lists the data directory': ({ data }) => fs.readdirSync(data),
  'reads the database': ({ data }) => read(data, 'millrace.db'),
  'reads the code of another task': ({ other }) => read(other),
  'reads the environment of the service': ({ pid }) => read('/proc', String(pid), 'environ'),
  'reads the environment of its parent': () => read('/proc', String(process.ppid), 'environ'),
  'reads the memory of the service': ({ pid }) => fs.openSync('/proc/' + pid + '/mem', 'r+'),
  'climbs out of its tmp': ({ data }) => read(os.tmpdir(), '../../../../../../..', data, 'millrace.db'),
  'follows a link out of its tmp': ({ data }) => {
    const link = path.join(os.tmpdir(), 'link');
    fs.symlinkSync(path.join(data, 'millrace.db'), link);
    return read(link);
  },
  'writes into the data directory': ({ data }) => fs.writeFileSync(path.join(data, 'x'), 'x'),
  'writes into /etc': () => fs.writeFileSync('/etc/x', 'x'),
  'writes into /var/tmp': () => fs.writeFileSync('/var/tmp/millrace-escape', 'x'),
  'changes its own code': () => fs.appendFileSync(path.join(process.env.LAMBDA_TASK_ROOT, 'index.mjs'), 'x'),
  'signals the service': ({ pid }) => process.kill(pid, 'SIGKILL'),
  'signals everything': () => process.platform === 'linux' && process.kill(-1, 0),
  'debugs the service': ({ pid }) => process._debugProcess(pid),
};
export const handler = (event) => Object.fromEntries(Object.entries(tries)
  .filter(([name]) => !event.without.includes(name))
  .map(([name, attempt]) => {
    try { attempt(event); return [name, 'DONE']; } catch (error) { return [name, error.code ?? error.message]; }
  }));
`,
};

/** Connects to where it is told and answers what comes of it. */
export const connector: Files = {
  'index.mjs': `
import net from 'node:net';
const attempt = (where) => new Promise((resolve) => {
  const socket = net.connect(where);
  const end = (how) => { socket.destroy(); resolve(how); };
  socket.setTimeout(1500, () => end('timeout'));
  socket.on('connect', () => end('CONNECTED'));
  socket.on('error', (error) => end(error.code));
});
export const handler = async ({ places }) => {
  const answers = {};
  for (const [name, where] of Object.entries(places)) answers[name] = await attempt(where);
  return answers;
};
`,
};

/** Answers its variables and nothing else. */
export const environment: Files = { 'index.mjs': 'export const handler = () => ({ ...process.env });' };

export const bombs: Files = {
  'index.mjs': `
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
const turn = () => new Promise((resume) => setTimeout(resume, 1));
const bombs = {
  async memory() { const all = []; for (;;) { all.push(Buffer.alloc(4 * 1024 * 1024, 1)); await turn(); } },
  heap() { const all = []; for (;;) all.push(new Array(1000).fill({})); },
  async disk() {
    const piece = Buffer.alloc(4 * 1024 * 1024);
    for (let n = 0; n < 1000; n += 1) { fs.writeFileSync(path.join(os.tmpdir(), 'f' + n), piece); await turn(); }
  },
  output() {
    const line = 'x'.repeat(1023) + '\\n';
    for (let n = 0; n < 1024 * 1024; n += 1) process.stdout.write(line);
  },
  loop() { for (;;); },
  deaf() {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});
    return new Promise(() => setInterval(() => {}, 10));
  },
};
export const handler = ({ bomb }) => bombs[bomb]();
`,
};

/** Runs shell scripts, where a task may start programs from Node. */
export const nodeShell: Files = {
  'index.mjs': `
import { execFile } from 'node:child_process';
export const handler = ({ script }) => new Promise((resolve) =>
  execFile('/bin/sh', ['-c', script], { timeout: 10_000, maxBuffer: 1e7 }, (error, stdout, stderr) =>
    resolve((stdout + stderr).trim() + (error ? ' [' + error.code + ']' : ''))));
`,
};

/** The same in Python, which nothing but the host holds back from starting programs. */
export const pythonShell: Files = {
  'index.py': `
import subprocess
def handler(event, context):
    done = subprocess.run(['/bin/sh', '-c', event['script']], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10)
    return done.stdout.decode('utf-8', 'replace').strip() + (' [%d]' % done.returncode if done.returncode else '')
`,
};

/** Traces a process as a debugger does, and answers the number of the error. */
export const tracer: Files = {
  'index.py': `
import ctypes, errno
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
def handler(event, context):
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.restype = ctypes.c_long
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if library.ptrace(PTRACE_ATTACH, event['pid'], None, None) == 0:
        library.ptrace(PTRACE_DETACH, event['pid'], None, None)
        return 'DONE'
    return errno.errorcode[ctypes.get_errno()]
`,
};
