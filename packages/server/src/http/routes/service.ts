import { version } from '../../platform/version.ts';
import { answer, type HandlersOf } from '../handlers.ts';

export function serviceHandlers(): HandlersOf<'ping'> {
  return { ping: async () => answer({ status: 'ok', version }) };
}
