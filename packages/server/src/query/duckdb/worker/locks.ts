/** What keeps DuckDB from reaching anything but what it was given. `lock_configuration` comes after these. */
export const lockedSettings = [
  'set autoinstall_known_extensions = false',
  'set autoload_known_extensions = false',
  'set allow_community_extensions = false',
  'set allow_persistent_secrets = false',
  'set enable_external_access = false',
  "set timezone = 'UTC'",
  'set errors_as_json = true',
] as const;
