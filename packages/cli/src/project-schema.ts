type JsonValue = object;

/** JSON Schemas of the contract that the project file is made of. */
export interface ContractSchemas {
  readonly topic: JsonValue;
  readonly deployRequest: { readonly properties: Readonly<Record<string, JsonValue>> };
}

const taskSettings = [
  'runtime',
  'endpoint',
  'environment',
  'memoryMb',
  'timeoutSec',
  'batchSize',
  'concurrency',
  'maxAttempts',
  'description',
  'handler',
] as const;

/** The JSON Schema of millrace.json, for editors. The file in this package is held to it by a test. */
export function projectSchema({ topic, deployRequest }: ContractSchemas): object {
  const names = (description: string) => ({
    type: 'array',
    items: { type: 'string' },
    maxItems: 100,
    description,
  });
  const settings = taskSettings.map((name) => [name, deployRequest.properties[name] ?? {}]);
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'A Millrace project',
    description: 'What `millrace deploy` applies to an organization. What is not declared is left alone.',
    type: 'object',
    additionalProperties: false,
    properties: {
      $schema: { type: 'string' },
      topics: { type: 'object', description: 'Topics by name.', additionalProperties: topic },
      schemas: {
        type: 'object',
        description: 'JSON Schemas by topic: the types and the order of its columns.',
        additionalProperties: {
          anyOf: [{ type: 'object' }, { type: 'string', description: 'A file that has it.' }],
        },
      },
      tasks: {
        type: 'object',
        description: 'Tasks by name.',
        additionalProperties: {
          type: 'object',
          additionalProperties: false,
          required: ['code'],
          properties: {
            code: {
              type: 'string',
              description:
                'A file of TypeScript or JavaScript, which is bundled; a file of another runtime or a folder is packed as it is.',
            },
            input: names('The streams that the task reads.'),
            output: names('The topics it may publish to.'),
            ...Object.fromEntries(settings),
          },
        },
      },
    },
  };
}
