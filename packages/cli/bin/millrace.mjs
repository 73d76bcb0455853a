#!/usr/bin/env node
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { constants, homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// The code needs Node 26. In the repository `npm install` brings one, which whatever Node the machine has starts;
// elsewhere it is the machine's own, or the npm package `node`.
const oldest = 26;
const here = dirname(fileURLToPath(import.meta.url));
const main = existsSync(join(here, '../dist/main.js')) ? '../dist/main.js' : '../src/main.ts';

if (Number(process.versions.node.split('.')[0]) >= oldest) {
  // Compiling is most of what a short command does. Where the cache cannot be kept, it does without.
  const cache = cacheFolder();
  if (cache !== undefined) module.enableCompileCache(join(cache, 'millrace'));
  const { run } = await import(main);
  process.exitCode = await run(process.argv.slice(2));
} else {
  const node = findNode();
  if (node === undefined) {
    process.stderr.write(
      `millrace needs Node ${oldest}, and this is ${process.version}. \`npm install node@${oldest}\` puts one beside it.\n`,
    );
    process.exit(1);
  }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: 'inherit' });
  // A terminal sends ctrl-C to both; the child decides how to end.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      if (signal !== 'SIGINT') child.kill(signal);
    });
  }
  child.on('exit', (code, signal) => {
    process.exit(signal === null ? code : 128 + constants.signals[signal]);
  });
}

/** A user that the system does not know has no home. */
function cacheFolder() {
  if (process.env.XDG_CACHE_HOME) return process.env.XDG_CACHE_HOME;
  try {
    return join(homedir(), '.cache');
  } catch {
    return undefined;
  }
}

function findNode() {
  try {
    const found = join(dirname(createRequire(import.meta.url).resolve('node/package.json')), 'bin/node');
    return existsSync(found) ? found : undefined;
  } catch {
    return undefined;
  }
}
