import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readHierarchies } from './cgroup-places.ts';

describe('the groups of a process are found', () => {
  it('in a single tree, as systemd mounts it', () => {
    const mounts = [
      '22 27 0:20 / /proc rw,nosuid shared:5 - proc proc rw',
      '30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate',
    ].join('\n');
    assert.deepEqual(readHierarchies(mounts, '0::/system.slice/millrace.service\n'), [
      {
        kind: 'newer',
        controllers: [],
        folder: '/sys/fs/cgroup/system.slice/millrace.service',
      },
    ]);
  });

  it('in a tree for each controller, also where two share one', () => {
    const mounts = [
      '31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755',
      '32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct',
      '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory',
      '40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd',
    ].join('\n');
    const membership = '5:cpu,cpuacct:/\n4:memory:/jobs/one\n1:name=systemd:/init.scope\n0::/init.scope\n';
    assert.deepEqual(
      readHierarchies(mounts, membership).map(({ controllers, folder }) => [controllers, folder]),
      [
        [['cpu', 'cpuacct'], '/sys/fs/cgroup/cpu,cpuacct'],
        [['memory'], '/sys/fs/cgroup/memory/jobs/one'],
        [['name=systemd'], '/sys/fs/cgroup/systemd/init.scope'],
      ],
    );
  });

  it('in a container that sees only its own part', () => {
    const mount = '9 8 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory';
    assert.equal(readHierarchies(mount, '4:memory:/docker/abc')[0]?.folder, '/sys/fs/cgroup/memory');
    assert.equal(
      readHierarchies(mount, '4:memory:/docker/abc/inner')[0]?.folder,
      '/sys/fs/cgroup/memory/inner',
    );
    assert.deepEqual(readHierarchies(mount, '4:memory:/docker/abcdef'), []);
  });

  it('wherever they are mounted, and not outside of what is mounted', () => {
    const mount = '9 8 0:26 / /mnt/my\\040groups rw shared:4 master:1 - cgroup2 none rw';
    assert.equal(readHierarchies(mount, '0::/a b')[0]?.folder, '/mnt/my groups/a b');
    assert.deepEqual(readHierarchies(mount, '0::/../other'), []);
    assert.deepEqual(readHierarchies('', '0::/'), []);
    assert.deepEqual(readHierarchies('nonsense', 'nonsense'), []);
  });
});
