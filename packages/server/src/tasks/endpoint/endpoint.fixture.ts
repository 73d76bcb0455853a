import { request as call, createServer, type IncomingHttpHeaders } from 'node:http';
import { type EndpointRequest, endpointTarget } from './endpoint-request.ts';

export const receivedAt = Date.UTC(2026, 2, 5, 9, 8, 7, 654);

export function endpointRequest(other: Partial<EndpointRequest> = {}): EndpointRequest {
  return {
    organization: { id: 'o1', name: 'acme' },
    taskId: 'shop',
    method: 'GET',
    path: '/',
    queryString: '',
    rawHeaders: ['Host', 'data.example.com'],
    body: Buffer.alloc(0),
    httpVersion: '1.1',
    scheme: 'https',
    sourceIp: '203.0.113.9',
    requestId: 'request-1',
    receivedAt,
    ...other,
  };
}

/** What Node makes of bytes on a real connection, as the endpoint gets it. */
export async function overHttp(options: {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders | Record<string, string | string[]>;
  readonly body?: Uint8Array;
}): Promise<EndpointRequest> {
  const { promise, resolve } = Promise.withResolvers<EndpointRequest>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    response.end();
    const { method = '', rawHeaders, httpVersion } = request;
    const target = endpointTarget(request.url ?? '');
    resolve(endpointRequest({ method, rawHeaders, httpVersion, body: Buffer.concat(chunks), ...target }));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const { method, path, headers, body } = options;
  call({ port, host: '127.0.0.1', method, path: `/v1/organization/acme/endpoint/shop${path}`, headers }).end(
    body,
  );
  const request = await promise;
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
  return request;
}
