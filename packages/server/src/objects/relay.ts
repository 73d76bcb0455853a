import type { UrlSigner } from './files/signature.ts';
import { requireKey } from './key.ts';
import type { ObjectStore } from './objects.ts';

/**
 * The same store with uploads that come through this service instead of going to the engine directly.
 *
 * S3 can hold a signed PUT to one use only when the uploader sends `If-None-Match: *`, which a client that
 * was given nothing but a URL does not know. Where a bare URL must do, the URL leads to the routes of
 * files/routes.ts, registered over this store, and they pass the bytes on with that condition.
 */
export function relayUploads(store: ObjectStore, signer: UrlSigner): ObjectStore {
  return {
    put: (key, body, options) => store.put(key, body, options),
    create: (key, body, options) => store.create(key, body, options),
    get: (key, range) => store.get(key, range),
    head: (key) => store.head(key),
    delete: (key) => store.delete(key),
    list: (prefix, options) => store.list(prefix, options),
    signedGet: (key, options) => store.signedGet(key, options),
    async signedPut(key, { expiresAt, contentLength }) {
      const url = signer.sign({ method: 'PUT', key: requireKey(key), expiresAt, contentLength });
      return { url, headers: {} };
    },
    check: () => store.check(),
    close: () => store.close(),
  };
}
