import { openFileStore } from './files.ts';
import { urlSigner } from './signature.ts';

// A process that puts what it reads into an object, for tests that kill it on the way.
const [directory = '', key = ''] = process.argv.slice(2);
const signer = urlSigner(Buffer.alloc(32), () => 'http://localhost');
const store = await openFileStore({ directory, signer });
await store.put(key, process.stdin);
process.stdout.write('stored');
