/**
 * The parts that the client is made of, for libraries that need a few of them in a small bundle.
 *
 * @module
 */
export { apiKeyCredentials, type Credentials } from './credentials.ts';
export { MillraceError } from './millrace-error.ts';
export { publishMany, publishMessage } from './publishing.ts';
export { State } from './state.ts';
export { Transport, type TransportOptions } from './transport.ts';
