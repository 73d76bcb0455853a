/**
 * Node's HTTP, without what an `import` of it brings. An import reads every name that the module has, and some of
 * them load a whole HTTP client: 15 MiB and a tenth of a second that a start does not need.
 */
export const { createServer, request, STATUS_CODES, validateHeaderName, validateHeaderValue } =
  process.getBuiltinModule('node:http');
