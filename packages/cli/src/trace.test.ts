import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { traceOf } from './trace.ts';

describe('the trace of an error', () => {
  const error = { type: 'Error', message: 'boom\nand more' };

  it('is shown without the error itself', () => {
    const trace = ['Error: boom', 'and more', '    at handler (tasks/enrich.ts:3:9)'];
    assert.deepEqual(traceOf({ ...error, ...{ trace } }), ['    at handler (tasks/enrich.ts:3:9)']);
    const stackTrace = ['  File "app.py", line 2, in handler\n    raise Bad()\n'];
    assert.deepEqual(traceOf({ ...error, ...{ stackTrace } }), [
      '  File "app.py", line 2, in handler',
      '    raise Bad()',
    ]);
  });

  it('is nothing where the service does not tell', () => {
    assert.deepEqual(traceOf(error), []);
    assert.deepEqual(traceOf({ ...error, ...{ trace: 'at x' } }), []);
  });
});
