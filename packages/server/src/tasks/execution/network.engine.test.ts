import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { answerOf, openSite, type Site } from './execution.fixture.ts';

const fetching = {
  'index.mjs': `export const handler = async ({ url }) => fetch(url).then(async (r) => r.status + ' ' + await r.text(), (e) => String(e.cause?.message ?? e.message));`,
};
const shell = {
  'index.mjs': `import { execFile } from 'node:child_process';
    export const handler = ({ script }) => new Promise((resolve) => execFile('/bin/sh', ['-c', script], (error, out) => resolve(out)));`,
};

if (process.env.MILLRACE_TEST_BUBBLEWRAP === undefined) {
  it('networks in bubblewrap', { skip: 'there is no bubblewrap' });
} else {
  networksSuite();
}

function networksSuite(): void {
  describe('a filtered network', () => {
    let site: Site;
    before(async () => {
      site = await openSite({
        sandbox: 'bubblewrap',
        network: 'filtered',
        networkAllow: ['127.0.0.1', 'localhost', '169.254.169.254', 'allowed.invalid'],
      });
    });
    after(() => site.close());

    it('leads to the service, and through the proxy only to what is allowed and public', async () => {
      const pool = await site.pool(fetching);
      const endpoint = await site.pool({
        'index.mjs': 'export const handler = () => process.env.MILLRACE_ENDPOINT',
      });
      const own = String(await answerOf(endpoint));
      assert.equal(await answerOf(pool, { url: own }), '200 from the service');
      for (const url of [
        'http://169.254.169.254/latest',
        'http://other.example/',
        'https://other.example/',
        'http://allowed.invalid/',
      ]) {
        const answer = String(await answerOf(pool, { url }));
        assert.match(
          answer,
          /^(403|502) |Request was cancelled|Proxy response|\b(403|502)\b/,
          `${url}: ${answer}`,
        );
      }
      // Past the proxy there is no way at all.
      const loopback = await answerOf(pool, { url: `http://127.0.0.1:${site.service.port}/` });
      assert.match(String(loopback), /ECONNREFUSED/);
      await Promise.all([pool.close(), endpoint.close()]);
    });

    it('is the same for programs that a task starts', async (test) => {
      if (!existsSync('/usr/bin/curl')) return test.skip('The host has no /usr/bin/curl.');
      const pool = await site.pool(shell);
      const script =
        'curl -s http://169.254.169.254/; curl -s --noproxy "*" -m 2 http://169.254.169.254/ || echo no way';
      assert.equal(
        await answerOf(pool, { script }),
        '169.254.169.254 leads to an address that is not public.\nno way\n',
      );
      await pool.close();
    });
  });

  it('an open network is that of the host', async () => {
    const site = await openSite({ sandbox: 'bubblewrap', network: 'open' });
    try {
      const pool = await site.pool(fetching);
      const url = `http://127.0.0.1:${site.service.port}/`;
      assert.equal(await answerOf(pool, { url }), '200 from the service');
    } finally {
      await site.close();
    }
  });

  it('an executable of its own works in an open network of a sandbox', async (test) => {
    if (!existsSync('/usr/bin/curl')) return test.skip('The host has no /usr/bin/curl.');
    const site = await openSite({ sandbox: 'bubblewrap', network: 'open' });
    try {
      const bootstrap = `#!/bin/sh
api="http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation"
while true; do
  curl -sS -D /tmp/headers -o /tmp/event "$api/next" || exit 1
  id=$(grep -i lambda-runtime-aws-request-id /tmp/headers | tr -d '\\r' | cut -d' ' -f2)
  curl -sS -X POST "$api/$id/response" -d @/tmp/event >/dev/null
done`;
      const pool = await site.pool({ bootstrap }, { runtime: 'PROVIDED', handler: 'any' });
      assert.deepEqual(await answerOf(pool, { n: 1 }), { n: 1 });
    } finally {
      await site.close();
    }
  });
}
