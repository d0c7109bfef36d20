/**
 * Returns the size of a test: the environment variable `name` if it is set, or else the size for a soak if SOAK is set, as
 * `npm run soak` does, or else the usual size.
 */
export function testSize(name: string, { usual, soak }: { readonly usual: number; readonly soak: number }): number {
  const { SOAK, [name]: given } = process.env;
  return Number(given ?? (SOAK ? soak : usual));
}
