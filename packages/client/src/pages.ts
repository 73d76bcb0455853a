/** All entries of a listing, page after page, each asked for when the one before is used up. */
export async function* pages<Entry, Token extends string>(
  read: (token: Token | undefined) => Promise<{ entries: readonly Entry[]; next: Token | null | undefined }>,
): AsyncGenerator<Entry, void> {
  let token: Token | undefined;
  do {
    const page = await read(token);
    yield* page.entries;
    token = page.next ?? undefined;
  } while (token !== undefined);
}
