import { Millrace, type MillraceOptions, type RetryOptions } from '@millrace/client';
import { sentenceOf } from './advice.ts';
import { type GivenOptions, UsageError } from './command.ts';
import { type Output, styled } from './output.ts';
import type { Profile, Profiles } from './profile.ts';
import { version } from './version.ts';

export const usualEndpoint = 'http://127.0.0.1:8080';

/** Sent with every request. */
export const headers = { 'user-agent': `millrace-cli/${version}` };

/** Waits shorter than this need no explanation. */
const noticedMilliseconds = 1_000;

/** Tries again as often as the client does by itself, and tells a person who waits for it. */
export function patience(output: Output): RetryOptions {
  return {
    onRetry: ({ error, delayMilliseconds }) => {
      if (delayMilliseconds < noticedMilliseconds) return;
      const seconds = (delayMilliseconds / 1000).toFixed(1);
      output.note(styled('dim', `${sentenceOf(error)} Trying again in ${seconds} s.`));
    },
  };
}

/** How the service is reached: flags win over the environment, and that over the profile. */
export function connectionOf(
  options: GivenOptions,
  environment: NodeJS.ProcessEnv,
  profiles: Profiles,
  output: Output,
) {
  const endpoint = async () => {
    const { endpoint: kept } = await profiles.profile();
    const url = options.text('endpoint') ?? (environment.MILLRACE_ENDPOINT || kept || usualEndpoint);
    if (!URL.canParse(url) || !/^https?:/.test(url))
      throw new UsageError(`The endpoint "${url}" is not a URL such as ${usualEndpoint}.`);
    return url;
  };
  const connect = async (url: string, keptCounts: boolean) => {
    const profile = await profiles.profile();
    return new Millrace({
      endpoint: url,
      organization:
        options.text('organization') ?? (environment.MILLRACE_ORGANIZATION || profile.organization),
      headers,
      retry: patience(output),
      ...credentialOf(
        options.text('api-key') ?? (environment.MILLRACE_API_KEY || undefined),
        keptCounts ? profile : {},
        profiles,
      ),
    });
  };
  return {
    endpoint,
    client: async () => {
      const url = await endpoint();
      const { endpoint: kept } = await profiles.profile();
      // What was kept is for the service it was kept for: no other one is shown it.
      return connect(url, originOf(kept ?? usualEndpoint) === originOf(url));
    },
    clientAt: (url: string) => connect(url, true),
  };
}

function credentialOf(
  apiKey: string | undefined,
  kept: Profile,
  profiles: Profiles,
): Pick<MillraceOptions, 'apiKey' | 'session' | 'onTokens' | 'latestTokens'> {
  if (apiKey !== undefined) return { apiKey };
  if (kept.apiKey !== undefined) return { apiKey: kept.apiKey };
  return {
    session: kept.session,
    onTokens: (session) => profiles.update({ session }),
    // Another command may have refreshed it, in another terminal.
    latestTokens: async () => (await profiles.profile()).session,
  };
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}
