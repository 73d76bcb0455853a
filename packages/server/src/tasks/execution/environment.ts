import type { RunnableVersion } from '../version.ts';

/** Where a process finds things, as it sees them itself. */
export interface Whereabouts {
  readonly taskRoot: string;
  readonly temporary: string;
  readonly runtimeApi: string;
  readonly endpoint: string;
  /** The proxy for everything else, where there is one. */
  readonly proxy?: string | undefined;
}

/**
 * The variables that the service gives. Nothing of the service's own environment is among them: even the
 * search path is written here.
 */
export function ownVariables(version: RunnableVersion, where: Whereabouts): Record<string, string> {
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: where.temporary,
    TMPDIR: where.temporary,
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    AWS_LAMBDA_FUNCTION_NAME: version.taskId,
    AWS_LAMBDA_FUNCTION_VERSION: version.version,
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(version.memoryMb),
    _HANDLER: version.handler,
    LAMBDA_TASK_ROOT: where.taskRoot,
    AWS_LAMBDA_RUNTIME_API: where.runtimeApi,
    MILLRACE_API_KEY: version.apiKey,
    MILLRACE_ORGANIZATION: version.organization.name,
    MILLRACE_ENDPOINT: where.endpoint,
    MILLRACE_TASK_ID: version.taskId,
    MILLRACE_TASK_VERSION: version.version,
    // Libraries that exist already read these names.
    dataspray_api_key: version.apiKey,
    dataspray_organization_name: version.organization.name,
    dataspray_endpoint: where.endpoint,
    ...(where.proxy === undefined ? {} : proxyVariables(where.proxy)),
  };
}

function proxyVariables(proxy: string): Record<string, string> {
  const direct = '127.0.0.1,localhost';
  return {
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    NO_PROXY: direct,
    http_proxy: proxy,
    https_proxy: proxy,
    no_proxy: direct,
    NODE_USE_ENV_PROXY: '1',
  };
}

/** What the deploy put in, without what the service gives itself. */
export function deployedVariables(
  version: RunnableVersion,
  own: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(Object.entries(version.environment).filter(([name]) => !(name in own)));
}

/**
 * Exports as lines of shell, because on a command line they would be there for every user of the host to
 * read. A name that a shell cannot export is left out.
 */
export function exportLines(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .filter(([name, value]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !value.includes('\0'))
    .map(([name, value]) => `export ${name}=${quote(value)}\n`)
    .join('');
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
