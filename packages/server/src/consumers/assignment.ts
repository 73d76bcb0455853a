import { partitionCount } from '../events/events.ts';

/**
 * Which node works on which partition of a topic for a consumer. Every node computes the same from the
 * same list of nodes, without talking.
 *
 * Each partition goes to the node with the highest hash of (consumer, topic, partition, node) that has not
 * yet got its part of the topic. So every node gets the same number of partitions, give or take one, and
 * when a node comes or goes, most of what the others have stays where it is.
 */
export function assignPartitions(
  consumerId: string,
  topicName: string,
  nodes: readonly string[],
): readonly string[] {
  const most = Math.ceil(partitionCount / Math.max(nodes.length, 1));
  const got = new Map<string, number>();
  const owners: string[] = [];
  for (let partition = 0; partition < partitionCount; partition += 1) {
    const place = `${consumerId}\n${topicName}\n${partition}\n`;
    let owner = '';
    let highest = -1;
    for (const node of nodes) {
      if ((got.get(node) ?? 0) >= most) continue;
      const weight = hash(place + node);
      if (weight > highest || (weight === highest && node > owner)) {
        owner = node;
        highest = weight;
      }
    }
    got.set(owner, (got.get(owner) ?? 0) + 1);
    owners.push(owner);
  }
  return owners;
}

/** The node that has the highest hash for a name. */
export function chooseNode(name: string, nodes: readonly string[]): string | undefined {
  let chosen: string | undefined;
  let highest = -1;
  for (const node of nodes) {
    const weight = hash(`${name}\n${node}`);
    if (weight > highest) {
      chosen = node;
      highest = weight;
    }
  }
  return chosen;
}

/** FNV-1a with a last mix, without which names that differ only in their end would stay close together. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
