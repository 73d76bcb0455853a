import Type from 'typebox';
import { strict } from '../names.ts';
import { defineOperations } from '../operation.ts';

export function serviceOperations() {
  return defineOperations({
    ping: {
      method: 'GET',
      path: '/v1/health',
      group: 'Service',
      summary: 'Whether the service is up',
      description: 'Orchestrators use /livez and /readyz, Prometheus /metrics.',
      access: { kind: 'public' },
      responses: {
        200: {
          description: 'It is.',
          schema: strict({ status: Type.Literal('ok'), version: Type.String() }),
        },
      },
      example: { response: { status: 'ok', version: '0.1.0' } },
    },
  });
}
