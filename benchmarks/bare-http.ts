import { createServer } from 'node:http';

/** What Node can do at best: a server that looks at nothing and answers as much as the service would. */
const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
    response.end('"DEFAULT"');
  });
});

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') {
    process.stdout.write(`bare ready on http://127.0.0.1:${address.port}\n`);
  }
});
process.on('SIGTERM', () => process.exit(0));
