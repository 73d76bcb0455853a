import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partitionCount } from '../events/events.ts';
import { assignPartitions, chooseNode } from './assignment.ts';

const topics = Array.from({ length: 200 }, (_, index) => `topic-${index}`);

function counts(owners: readonly string[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const owner of owners) found.set(owner, (found.get(owner) ?? 0) + 1);
  return found;
}

test('every node gets its part of a topic, and no more than one above it', () => {
  for (let size = 1; size <= 16; size += 1) {
    const nodes = Array.from({ length: size }, (_, index) => `node-${index}`);
    for (const topic of topics.slice(0, 20)) {
      const owners = assignPartitions('task/o1/t1', topic, nodes);
      assert.equal(owners.length, partitionCount);
      const most = Math.ceil(partitionCount / size);
      for (const count of counts(owners).values()) assert.ok(count <= most, `${count} of ${most}`);
    }
  }
});

test('over many topics the nodes have the same, also with more nodes than partitions', () => {
  const nodes = Array.from({ length: 20 }, (_, index) => `node-${index}`);
  const all = counts(topics.flatMap((topic) => assignPartitions('lake/o1', topic, nodes)));
  const fair = (topics.length * partitionCount) / nodes.length;
  for (const node of nodes) {
    const count = all.get(node) ?? 0;
    assert.ok(count > fair * 0.7 && count < fair * 1.3, `${node} has ${count}, fair is ${fair}`);
  }
});

test('the order in which nodes are listed does not matter, and most stays when one comes', () => {
  const [two, three] = [
    ['a', 'b'],
    ['a', 'b', 'c'],
  ];
  let moved = 0;
  for (const topic of topics) {
    const before = assignPartitions('task/o1/t1', topic, two);
    assert.deepEqual(assignPartitions('task/o1/t1', topic, two.toReversed()), before);
    const after = assignPartitions('task/o1/t1', topic, three);
    moved += after.filter((owner, partition) => owner !== before[partition]).length;
  }
  const share = moved / (topics.length * partitionCount);
  assert.ok(share > 0.3 && share < 0.5, `${share} moved`);
});

test('without nodes nobody has anything', () => {
  assert.deepEqual(new Set(assignPartitions('task/o1/t1', 'orders', [])), new Set(['']));
  assert.equal(chooseNode('orders', []), undefined);
  assert.equal(chooseNode('orders', ['a']), 'a');
});
