/** The form in which usernames, emails and organization names are compared: without regard to case. */
export function comparable(name: string): string {
  return name.normalize('NFKC').toLowerCase();
}
