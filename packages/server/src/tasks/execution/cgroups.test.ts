import { cgroupsSuite, groupSuite } from './cgroups.suite.ts';

cgroupsSuite('without a sandbox', 'none');
groupSuite();
