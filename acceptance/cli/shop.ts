import { newApiKey, newOrganization, newPerson } from '../harness/people.ts';
import { type RunningService, type StartOptions, startService } from '../harness/service.ts';
import { newPlace } from './terminal.ts';

/** A service with an organization, and a place from where an API key of it is used. */
export interface Shop extends Awaited<ReturnType<typeof newPlace>> {
  readonly service: RunningService;
  readonly organization: string;
  readonly apiKey: string;
  readonly token: string;
}

export async function openShop(options: StartOptions = {}): Promise<Shop> {
  const service = await startService(options);
  const person = await newPerson(service);
  const organization = await newOrganization(service, person);
  const { secret } = await newApiKey(service, person.accessToken, organization);
  const place = await newPlace({
    MILLRACE_ENDPOINT: service.url,
    MILLRACE_ORGANIZATION: organization,
    MILLRACE_API_KEY: secret,
  });
  const remove = async () => {
    await service.remove();
    await place.remove();
  };
  return { ...place, service, organization, apiKey: secret, token: person.accessToken, remove };
}
