import { attacksSuite } from './attacks.suite.ts';

attacksSuite('without a sandbox and control groups', { sandbox: 'none', cgroups: 'none' });
