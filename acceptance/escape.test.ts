import { escapeSuite } from './harness/escape.suite.ts';

escapeSuite('without a sandbox', { sandbox: 'none' });
