type Texts = Readonly<Record<string, unknown>>;

/** The fields of a creation that the lead in its response repeats. `/v1` never adds one. */
export const REPEATED = ['displayName', 'sourceId', 'note'];

/**
 * Whether the lead belongs to the capture, and not to another request whose response came instead. The service changes
 * only the letter case of `sourceId`. A missing or undocumented value proves nothing.
 */
export function isOf(capture: Texts | null | undefined, lead: Texts): boolean {
  if (!capture) return true;
  return REPEATED.every((name) => {
    const inOneCase = (value: unknown) =>
      name === 'sourceId' && typeof value === 'string' ? value.toLowerCase() : value;
    const value = lead[name];
    const isDocumented = typeof value === 'string' || (value === null && name !== 'displayName');
    return !isDocumented || inOneCase(value) === inOneCase(capture[name] ?? null);
  });
}
