import { handlersSuite } from './handlers.suite.ts';

handlersSuite('without a sandbox', { sandbox: 'none' });
