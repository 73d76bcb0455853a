export type { TaskContext } from './context.ts';
export { type EndpointAnswer, type EndpointEvent, endpointHandler } from './endpoint.ts';
export { log } from './log.ts';
export {
  type Published,
  type PublishManyOptions,
  type PublishOptions,
  publish,
  publishMany,
  type SetOptions,
  state,
} from './service.ts';
export {
  type StreamAnswer,
  type StreamEvent,
  type StreamMessage,
  type StreamOptions,
  type StreamRecord,
  streamHandler,
} from './stream.ts';
