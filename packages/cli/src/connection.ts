import { Millrace } from '@millrace/client';
import { type GivenOptions, UsageError } from './command.ts';
import type { Profiles } from './profile.ts';
import { version } from './version.ts';

const usualEndpoint = 'http://127.0.0.1:8080';

/** How the service is reached: flags win over the environment, and that over the profile. */
export function connectionOf(options: GivenOptions, environment: NodeJS.ProcessEnv, profiles: Profiles) {
  const endpoint = async () => {
    const { endpoint: kept } = await profiles.profile();
    const url = options.text('endpoint') ?? environment.MILLRACE_ENDPOINT ?? kept ?? usualEndpoint;
    if (!URL.canParse(url) || !/^https?:/.test(url))
      throw new UsageError(`The endpoint "${url}" is not a URL such as ${usualEndpoint}.`);
    return url;
  };
  const client = async () => {
    const profile = await profiles.profile();
    const apiKey = options.text('api-key') ?? environment.MILLRACE_API_KEY ?? profile.apiKey;
    return new Millrace({
      endpoint: await endpoint(),
      organization: options.text('organization') ?? environment.MILLRACE_ORGANIZATION ?? profile.organization,
      headers: { 'user-agent': `millrace-cli/${version}` },
      ...(apiKey === undefined
        ? { session: profile.session, onTokens: (session) => profiles.update({ session }) }
        : { apiKey }),
    });
  };
  return { endpoint, client };
}
