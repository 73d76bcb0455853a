/**
 * Where tasks may connect to. An entry is a host name, `*.` and a domain for everything below it, or `*`
 * for every public host; each may end in a port. Without one, the ports of HTTP and HTTPS are meant.
 */
export class AllowList {
  readonly #entries: readonly { readonly host: string; readonly port: number | undefined }[];

  constructor(entries: readonly string[]) {
    this.#entries = entries.map((entry) => {
      const [, host = entry, port] = /^(.*?)(?::(\d+))?$/.exec(entry.trim().toLowerCase()) ?? [];
      return { host, port: port === undefined ? undefined : Number(port) };
    });
  }

  allows(host: string, port: number): boolean {
    const name = host.toLowerCase().replace(/\.$/, '');
    return this.#entries.some(
      (entry) =>
        (entry.port === undefined ? port === 80 || port === 443 : entry.port === port) &&
        matches(entry.host, name),
    );
  }
}

function matches(pattern: string, name: string): boolean {
  if (pattern === '*' || pattern === name) return true;
  return pattern.startsWith('*.') && name.endsWith(pattern.slice(1)) && name.length > pattern.length - 1;
}
