import Type from 'typebox';

/** Pieces of schemas that several operations share. */

/**
 * The keyword of a schema that says in words what its pattern asks for, as the end of a sentence about the
 * value. People are told these instead of the pattern.
 */
export const patternWords = 'patternWords';

/** Text without NUL characters, which not every engine can keep. */
export const withoutNul = {
  pattern: '^[^\\x00]*$',
  [patternWords]: 'must not contain NUL characters',
} as const;

export const OrganizationName = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$',
  [patternWords]: 'must be 1 to 64 letters, digits, - or _, beginning with a letter or digit',
  description:
    '1 to 64 letters, digits, - or _, starting with a letter or digit; unique without regard to case.',
});

export const TopicName = Type.String({
  pattern: '^[A-Za-z0-9-][A-Za-z0-9_.-]{0,127}$',
  [patternWords]: 'must be 1 to 128 letters, digits, dots, - or _, beginning with a letter, a digit or -',
  description: '1 to 128 letters, digits, -, _ or ., not starting with _ or .',
});

export const TaskId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  [patternWords]: 'must be 1 to 64 letters, digits, - or _',
  description: '1 to 64 letters, digits, - or _.',
});

/** Ids that the service makes itself: sessions, keys, query executions. */
export const Identifier = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  [patternWords]: 'must be an id as the service gives them: 1 to 64 letters, digits, - or _',
  description: 'An id given by the service.',
});

export const Username = Type.String({
  pattern: '^(?!\\.{1,2}$)(?!.*\\p{Default_Ignorable_Code_Point})[\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}]{1,128}$',
  [patternWords]:
    'must be 1 to 128 letters, digits and punctuation marks without white space, and not just one or two dots',
  description: '1 to 128 letters, digits and punctuation, no white space; unique without regard to case.',
});

export const Email = Type.String({
  maxLength: 254,
  pattern:
    '^[^\\s@\\x00-\\x1f\\x7f,;:<>"()\\[\\]\\\\]+@(?:[A-Za-z0-9\\u00a1-\\uffff-]+\\.)*[A-Za-z0-9\\u00a1-\\uffff-]+$',
  [patternWords]: 'must be an email address, such as ada@example.org',
  description: 'An email address.',
});

/** Free text. */
export function text(maxLength: number, description: string) {
  return Type.String({ maxLength, ...withoutNul, description });
}

/** A secret typed by a person; how strong it must be is judged apart, so that the answer can explain. */
export const Password = Type.String({ maxLength: 256, description: 'A password of at least 8 characters.' });

export const Timestamp = Type.String({
  format: 'date-time',
  description: 'RFC 3339 in UTC with milliseconds.',
});

export const PageToken = Type.String({
  minLength: 1,
  maxLength: 4096,
  description: 'An opaque token of the page before. Pass it back unchanged.',
});

/** The number of entries wanted in a page. */
export function pageSize(fallback: number, maximum: number) {
  return Type.Integer({
    minimum: 1,
    maximum,
    default: fallback,
    description: `Entries in a page: 1 to ${maximum}, ${fallback} unless given.`,
  });
}

/** An object with exactly these properties. */
export function strict<Properties extends Type.TProperties>(properties: Properties, description?: string) {
  return Type.Object(properties, {
    additionalProperties: false,
    ...(description === undefined ? {} : { description }),
  });
}

/** One of a fixed list of words. */
export function oneOf<const Values extends readonly string[]>(values: Values, description?: string) {
  return Type.Unsafe<Values[number]>({
    type: 'string',
    enum: [...values],
    ...(description === undefined ? {} : { description }),
  });
}

export const inOrganization = strict({ organizationName: OrganizationName });
export const inTask = strict({ organizationName: OrganizationName, taskId: TaskId });
export const inTopic = strict({ organizationName: OrganizationName, topicName: TopicName });
