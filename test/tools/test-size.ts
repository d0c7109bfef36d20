/**
 * Returns the size of a test: the environment variable of that name, else the usual size, or the size for a soak with SOAK,
 * which `npm run soak` sets.
 */
export function testSize(name: string, { usual, soak }: { readonly usual: number; readonly soak: number }): number {
  const { SOAK, [name]: given } = process.env;
  return Number(given ?? (SOAK ? soak : usual));
}
