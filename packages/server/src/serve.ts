import { flushCompileCache } from 'node:module';
import { compose, type Service } from './compose.ts';
import { readSettings, type Settings } from './config/settings.ts';
import { openDataDirectory } from './platform/data-directory.ts';
import { createLog, type Log } from './platform/log.ts';
import { releaseStartMemory } from './platform/memory.ts';

/** The whole of a shutdown must be over in this time, whatever hangs. */
const lastResortMilliseconds = 9_000;

/** Ends the process at once, without a word to clients: what is not acknowledged was not accepted. */
type Die = (what: string, error: unknown) => never;

/** Runs the service until it is told to stop. */
export async function serve(): Promise<void> {
  const read = readSettings(process.env);
  if ('refusals' in read) return refuse(read.refusals);
  const { settings } = read;
  const { log, flush } = createLog(settings.logLevel);
  const die: Die = (what, error) => {
    log.error({ event: 'service.fatal', error }, what);
    flush();
    process.exit(1);
  };

  // Everything that is written is the service's own business, in files for its owner only.
  process.umask(0o077);
  const directory = await openDataDirectory(settings.dataDirectory);
  if ('refusal' in directory) return refuse([directory.refusal]);

  process.on('unhandledRejection', (error) => die('unhandled rejection', error));
  process.on('uncaughtException', (error) => die('uncaught exception', error));

  let service: Service;
  try {
    service = await compose({
      settings: { ...settings, dataDirectory: directory.path },
      log,
      onFatal: (error) => die('the disk failed; nothing more is acknowledged', error),
      showMail: process.stdout.isTTY ? (text) => process.stdout.write(text) : undefined,
    });
  } catch (error) {
    return refuse([error instanceof Error ? error.message : String(error)]);
  }

  flushCompileCache();
  await releaseStartMemory();
  const url = await listen(service, settings);
  if (url === undefined) return;

  let stopping = false;
  const stop = (signal: string) => {
    if (stopping) return;
    stopping = true;
    void shutDown(service, settings, log, signal).then(async () => {
      await directory.release();
      flush();
      process.exit(0);
    });
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));

  log.info({ event: 'service.ready', url }, 'ready');
  process.stdout.write(`millrace ready on ${url}\n`);
}

async function listen(service: Service, settings: Settings): Promise<string | undefined> {
  try {
    const listening = await service.app.listen({ host: settings.host, port: settings.port, backlog: 4096 });
    const url = settings.publicUrl ?? addressOf(listening);
    service.setListeningUrl(url);
    return url;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const place = `${settings.host}:${settings.port}`;
    const reason =
      code === 'EADDRINUSE'
        ? `${place} is in use by another program. Stop it, or set MILLRACE_PORT to another port.`
        : `Cannot listen on ${place}: ${code || String(error)}. Check MILLRACE_HOST and MILLRACE_PORT.`;
    await service.close();
    refuse([reason]);
    return undefined;
  }
}

/** Somebody who listens on every address is told one that a browser can open. */
function addressOf(listening: string): string {
  return listening.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

/**
 * Ends in order: new requests are refused, those in hand finish within their time, then everything is
 * closed. A second limit ends the process even if something hangs.
 */
async function shutDown(service: Service, settings: Settings, log: Log, signal: string): Promise<void> {
  log.info({ event: 'service.stopping', signal }, 'stopping');
  const budget = settings.shutdownSeconds * 1000;
  const lastResort = setTimeout(() => {
    log.error({ event: 'service.stuck' }, 'shutdown took too long; ending now');
    process.exit(1);
  }, budget + lastResortMilliseconds);
  service.drain();
  const forced = setTimeout(() => {
    log.warn({ event: 'service.cut' }, 'requests in hand took too long and are cut off');
    service.app.server.closeAllConnections();
  }, budget);
  await service.app.close();
  clearTimeout(forced);
  await service.close();
  clearTimeout(lastResort);
  log.info({ event: 'service.stopped' }, 'stopped');
}

/** A start that cannot be: every reason on a line of its own, and exit code 78, «configuration error». */
function refuse(reasons: readonly string[]): void {
  for (const reason of reasons) process.stderr.write(`millrace: ${reason}\n`);
  process.exit(78);
}
