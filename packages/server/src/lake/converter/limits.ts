/** Levels of columns: a field of the message is the first. Objects and arrays on the last one are JSON. */
export const levelLimit = 8;

/** Fields of one nested object that are columns. */
export const nestedFieldLimit = 500;

/** JSON nested deeper than this is never given to the SQL engine as JSON: its stack is not ours to try. */
export const deepestJson = 200;

/** Levels that a message is taken apart to; a schema that was uploaded may go further than what is learnt. */
export const parsedLevels = 32;

/** Fields that have only been null which are remembered, so that messages with them stay quick. */
export const unknownLimit = 10_000;
