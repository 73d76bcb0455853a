import { it } from 'node:test';
import { duckdbEngineSuite } from './duckdb-engine.suite.ts';

const path = process.env.MILLRACE_TEST_BUBBLEWRAP;

if (path === undefined) it('the DuckDB engine inside bubblewrap', { skip: 'there is no bubblewrap' });
else duckdbEngineSuite('inside bubblewrap', { path });
