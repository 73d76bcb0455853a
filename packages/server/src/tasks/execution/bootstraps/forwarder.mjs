/**
 * Stands in front of a process that is not Node in its own network namespace: makes ports there lead to
 * sockets of the service, then runs the command and ends as it ends.
 */
import { spawn } from 'node:child_process';
import net from 'node:net';
import { constants } from 'node:os';

const [forwards, command, ...rest] = process.argv.slice(2);

function forward({ port, socket }) {
  const server = net.createServer({ allowHalfOpen: true }, (near) => {
    const far = net.connect({ path: socket, allowHalfOpen: true });
    near.setNoDelay(true);
    near.pipe(far).pipe(near);
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}

await Promise.all(JSON.parse(forwards).map(forward));
const child = spawn(command, rest, { stdio: 'inherit' });
child.once('error', (error) => {
  console.error(`The runtime did not start: ${error.message}`);
  process.exit(127);
});
child.once('exit', (status, signal) => process.exit(status ?? 128 + (constants.signals[signal] ?? 0)));
