import manifest from '../../package.json' with { type: 'json' };

/** The version of the server, as released. */
export const version: string = manifest.version;
