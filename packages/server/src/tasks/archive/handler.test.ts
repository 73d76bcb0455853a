import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Runtime } from '../version.ts';
import { findHandler } from './handler.ts';

const stored = { start: 0, bytes: 0, isDeflated: false, crc32: 0 };

function find(paths: string[], handler: string, runtime: Runtime, isExecutable = false): string {
  const files = paths.map((path) => ({ path, isExecutable, bytes: 0, stored }));
  const found = findHandler({ files }, handler, runtime);
  return 'file' in found ? found.file : found.refusal;
}

describe('the file of a handler', () => {
  it('is found for every version of Node, as CommonJS or as a module', () => {
    for (const runtime of ['NODEJS20_X', 'NODEJS22_X', 'NODEJS24_X', 'NODEJS26_X'] as const) {
      assert.equal(find(['index.js'], 'index.handler', runtime), 'index.js');
      assert.equal(find(['index.mjs'], 'index.handler', runtime), 'index.mjs');
      assert.equal(find(['index.cjs'], 'index.handler', runtime), 'index.cjs');
      assert.equal(find(['src/a/app.js'], 'src/a/app.some.deep.export', runtime), 'src/a/app.js');
      assert.equal(find(['src/app.js'], './src/app.handler', runtime), 'src/app.js');
      assert.equal(find(['v1.2/app.js'], 'v1.2/app.handler', runtime), 'v1.2/app.js');
    }
  });

  it('is named when it is missing', () => {
    assert.equal(
      find(['main.js', 'index.ts'], 'index.handler', 'NODEJS20_X'),
      'The handler "index.handler" is not in the zip file: it has no file any of index.js, index.mjs, index.cjs, index.',
    );
    assert.match(find(['folder/index.js'], 'index.handler', 'NODEJS20_X'), /it has no file/);
    assert.match(find(['app.js'], 'app.handler', 'PYTHON3'), /any of app.py, app\/__init__.py/);
    assert.match(find(['a/B.class'], 'a.C::run', 'JAVA21'), /it has no file a\/C\.class\.$/);
  });

  it('is refused when the handler does not name one', () => {
    for (const handler of [
      'index',
      '',
      '.',
      '.handler',
      'index.',
      '../index.handler',
      '/index.handler',
      'a//b.c',
    ]) {
      const sentence = find(['index.js'], handler, 'NODEJS20_X');
      assert.match(sentence, /must be file\.export|is not in the zip file/, handler);
    }
    assert.match(find(['app.py'], 'app', 'PYTHON3'), /must be module\.function/);
    assert.match(find(['A.class'], '../A', 'JAVA21'), /must be package\.Class/);
  });

  it('is found for Python, also in packages', () => {
    assert.equal(find(['app.py'], 'app.handler', 'PYTHON3'), 'app.py');
    assert.equal(find(['a/b/app.py'], 'a.b.app.handler', 'PYTHON3'), 'a/b/app.py');
    assert.equal(find(['a/b/app.py'], 'a/b/app.handler', 'PYTHON3'), 'a/b/app.py');
    assert.equal(find(['app/__init__.py'], 'app.handler', 'PYTHON3'), 'app/__init__.py');
  });

  it('is found for Java as a class or left to a jar', () => {
    assert.equal(find(['com/a/Handler.class'], 'com.a.Handler::run', 'JAVA21'), 'com/a/Handler.class');
    assert.equal(find(['Handler.class'], 'Handler', 'JAVA21'), 'Handler.class');
    assert.equal(find(['lib/code.jar'], 'com.a.Handler', 'JAVA21'), 'lib/code.jar');
    assert.equal(find(['code.jar'], 'com.a.Handler', 'JAVA21'), 'code.jar');
  });

  it('is no source for Java, and whoever packs one is told to compile it', () => {
    for (const path of ['Work.java', 'src/shop/Work.java']) {
      assert.match(
        find([path], 'shop.Work::run', 'JAVA21'),
        /it has no file shop\/Work\.class\. Sources are not compiled here: run javac/,
      );
    }
    assert.equal(find(['Work.java', 'shop/Work.class'], 'shop.Work', 'JAVA21'), 'shop/Work.class');
  });

  it('is the bootstrap of a runtime that is provided, which must be executable', () => {
    assert.equal(find(['bootstrap'], 'any', 'PROVIDED', true), 'bootstrap');
    assert.match(find(['bootstrap'], 'any', 'PROVIDED'), /not executable: pack it with mode 0755/);
    assert.match(find(['bin/bootstrap'], 'any', 'PROVIDED', true), /no file bootstrap at its top/);
  });
});
