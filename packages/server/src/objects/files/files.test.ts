import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { systemClock } from '../../platform/clock.ts';
import { objectStoreSuite } from '../objects.suite.ts';
import { openFileStore } from './files.ts';
import { listen } from './listening.fixture.ts';
import { urlSigner } from './signature.ts';

objectStoreSuite('an object store in a directory', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'millrace-objects-'));
  let baseUrl = '';
  const signer = urlSigner(randomBytes(32), () => baseUrl);
  const store = await openFileStore({ directory, signer });
  const { app, url } = await listen({ store, signer, clock: systemClock });
  baseUrl = url;
  return {
    store,
    expiryParameter: 'expires',
    signatureParameter: 'signature',
    async stop() {
      await app.close();
      await store.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
});
