import { duckdbEngineSuite } from './duckdb-engine.suite.ts';

duckdbEngineSuite('in plain processes', 'none');
