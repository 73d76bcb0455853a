/** Whether what is sent under a content type is in UTF-8: the type says so, or does not say. */
export function isUtf8(contentType: string | undefined): boolean {
  // Nearly every request has none, and then there is nothing to look for.
  if (contentType?.includes(';') !== true) return true;
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(contentType)?.[1];
  return charset === undefined || /^(utf-?8|us-ascii)$/i.test(charset);
}
