/** SQLite's primary result codes, the low byte of an extended one. */
export const sqliteCode = {
  busy: 5,
  locked: 6,
  noMemory: 7,
  readOnly: 8,
  inputOutput: 10,
  full: 13,
  cannotOpen: 14,
} as const;

/** SQLite's extended result code of what was thrown, or 0 for a fault that is not SQLite's. */
export function sqliteCodeOf(error: unknown): number {
  if (error instanceof Error && 'errcode' in error && typeof error.errcode === 'number') return error.errcode;
  return 0;
}

export function primaryCode(code: number): number {
  return code & 0xff;
}

/** Whether the disk failed, as against the database being full, busy or asked for something wrong. */
export function isInputOutputError(code: number): boolean {
  return primaryCode(code) === sqliteCode.inputOutput;
}
