import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startWords } from './start-words.ts';

it('code that does not load in Node is told with the lines of its own, and the error once', () => {
  const words = startWords({
    type: 'Error',
    message: 'no such thing',
    trace: [
      'Error [ERR_NO_THING]: no such thing',
      '    at load (file:///var/task/library.mjs:3:9)',
      '    at file:///var/task/index.mjs:1:7',
      '    at ModuleJob.run (node:internal/modules/esm/module_job:569:25)',
      '    at async loadHandler (file:///opt/millrace/bootstraps/node.mjs:150:18)',
    ],
  });
  assert.equal(
    words,
    'Error: no such thing\n    at load (file:///var/task/library.mjs:3:9)\n    at file:///var/task/index.mjs:1:7',
  );
});

it('code that does not load in Python is told with the frames of its own', () => {
  const words = startWords({
    type: 'ModuleNotFoundError',
    message: "No module named 'x'",
    trace: [
      'Traceback (most recent call last):',
      '  File "/opt/millrace/bootstraps/python3.py", line 105, in main',
      '    handler = load_handler(os.environ["_HANDLER"])',
      '              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^',
      '  File "<frozen importlib._bootstrap>", line 1206, in _gcd_import',
      '  File "/var/task/index.py", line 1, in <module>',
      '    import x',
      "ModuleNotFoundError: No module named 'x'",
    ],
  });
  assert.equal(
    words,
    `ModuleNotFoundError: No module named 'x'\n  File "/var/task/index.py", line 1, in <module>\n    import x`,
  );
});

it('what a process said before it ended is told as it is', () => {
  const trace = ['cannot open settings.json', '    at line 3'];
  assert.equal(
    startWords({ type: 'Runtime.ExitError', message: 'The process ended.', trace }),
    'Runtime.ExitError: The process ended.\ncannot open settings.json\n    at line 3',
  );
});
