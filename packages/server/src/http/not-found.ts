import type { FastifyReply, FastifyRequest } from 'fastify';
import { problem } from '../platform/problem.ts';
import { answerPreflight } from './headers.ts';
import { sendProblem } from './problems.ts';

/** Which methods each path has, to tell a path that does not exist from a method that does not. */
export class KnownPaths {
  readonly #methods = new Map<string, { shape: RegExp; methods: Set<string> }>();

  /** `url` is the router's form of a path, with `:name` and a last `*`. */
  add(url: string, methods: readonly string[]): void {
    const known = this.#methods.get(url) ?? { shape: shapeOf(url), methods: new Set() };
    for (const method of methods) known.methods.add(method);
    this.#methods.set(url, known);
  }

  methodsOf(path: string): string[] {
    const methods = new Set<string>();
    for (const known of this.#methods.values()) {
      if (known.shape.test(path)) for (const method of known.methods) methods.add(method);
    }
    return [...methods].sort();
  }
}

function shapeOf(url: string): RegExp {
  const pattern = url
    .replace(/\/$/, '')
    .split('/')
    .map((part) => (part === '*' ? '.*' : part.startsWith(':') ? '[^/]+' : part.replace(/[.]/g, '\\.')))
    .join('/');
  return new RegExp(`^${pattern}/?$`);
}

/** Answers what no route takes: preflights, wrong methods and unknown paths. */
export function notFoundHandler(paths: KnownPaths) {
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const path = request.url.split('?', 1)[0] ?? '';
    const methods = paths.methodsOf(path);
    if (methods.length === 0) {
      return sendProblem(
        reply,
        problem('NOT_FOUND', `There is nothing at ${request.method} ${path.slice(0, 200)}.`),
      );
    }
    const allow = [...methods, 'OPTIONS'].join(', ');
    if (request.method === 'OPTIONS') {
      reply.header('allow', allow);
      return request.headers['access-control-request-method'] === undefined
        ? reply.code(204).send()
        : answerPreflight(reply);
    }
    const detail = `${request.method} is not a method of this path. It has ${methods.join(', ')}.`;
    return sendProblem(reply, problem('METHOD_NOT_ALLOWED', detail, { headers: { allow } }));
  };
}
