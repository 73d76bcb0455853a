import { connect, type Socket } from 'node:net';

/** Holds connections open without a word until it is told to end. Run as a process: `port count`. */
const port = Number(process.argv[2]);
const count = Number(process.argv[3]);
const sockets: Socket[] = [];
let open = 0;
let refused = 0;

const one = (): Promise<void> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    sockets.push(socket);
    socket.on('connect', () => {
      open += 1;
      resolve();
    });
    socket.on('error', () => {
      refused += 1;
      resolve();
    });
    socket.on('close', () => {
      open -= 1;
    });
  });

for (let made = 0; made < count; made += 200) await Promise.all(Array.from({ length: 200 }, one));
process.stdout.write(`${open} open, ${refused} refused\n`);
process.on('SIGTERM', () => process.exit(0));
setTimeout(() => process.exit(0), 120_000);
