import { BlockList, isIP } from 'node:net';

/** Networks of IPv4 that are not the public internet. */
const notPublic: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

const closed = new BlockList();
for (const [network, bits] of notPublic) closed.addSubnet(network, bits, 'ipv4');
// Inside the public range of IPv6: documentation, and tunnels that lead to any address of IPv4.
closed.addSubnet('2001:db8::', 32, 'ipv6');
closed.addSubnet('2001::', 23, 'ipv6');
closed.addSubnet('2002::', 16, 'ipv6');

const publicSix = new BlockList();
publicSix.addSubnet('2000::', 3, 'ipv6');

/** Whether an address belongs to the public internet, as opposed to this host or the networks around it. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !closed.check(address, 'ipv4');
  if (family !== 6 || address.includes('%')) return false;
  return publicSix.check(address, 'ipv6') && !closed.check(address, 'ipv6');
}
