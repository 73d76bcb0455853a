/**
 * The program of the children in which DuckDB runs. `parser` says what a statement is and has nobody's files;
 * `runner` belongs to one organization, whose files lie in its working directory. It imports nothing but
 * DuckDB and its own folder, because nothing else is there inside bubblewrap.
 */
import type { InspectRequest, RunnerOptions, RunnerRequest } from '../protocol.ts';
import { startParser } from './parser.ts';
import { startRunner } from './runner.ts';

const [role, options = '{}'] = process.argv.slice(2);

function answer(message: object): void {
  // A server that has gone needs no answer.
  if (process.connected) process.send?.(message);
}

// The server is gone, or has had enough of this child.
process.on('disconnect', () => process.exit(0));

if (role === 'parser') {
  const inspect = await startParser();
  process.on('message', (request: InspectRequest) => {
    inspect(request.sql).then((inspection) => answer({ ...inspection, id: request.id }));
  });
} else {
  const given: RunnerOptions = JSON.parse(options);
  const runner = await startRunner(given);
  process.on('message', (request: RunnerRequest) => {
    if (request.kind === 'interrupt') runner.interrupt();
    else runner.handle(request).then((outcome) => answer({ ...outcome, id: request.id }));
  });
}
answer({ kind: 'ready' });
