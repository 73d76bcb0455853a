/** How many there are of something, such as `1 row` and `2,000 rows`. */
export function amountOf(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}
