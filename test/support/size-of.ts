/**
 * How large a test is: what the environment says under that name, else the usual size, or the one for a soak. `npm run soak`
 * sets SOAK.
 */
export function sizeOf(name: string, { usual, soak }: { readonly usual: number; readonly soak: number }): number {
  const { SOAK, [name]: given } = process.env;
  return Number(given ?? (SOAK ? soak : usual));
}
