/** The maximum number of errors taken from a chain of causes, which may be circular. */
const MAX_CAUSES = 5;

/** Returns an error and its causes, the outermost first. */
export function findCauses(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let next = error; next instanceof Error && chain.length < MAX_CAUSES; next = next.cause) chain.push(next);
  return chain;
}

/** Returns an error and its causes in one line: the outermost message often says only that something failed. */
export function errorSummary(error: unknown): string {
  const messages: string[] = [];
  for (const each of findCauses(error)) {
    const message = each.message || (each as NodeJS.ErrnoException).code || each.name;
    if (!messages.some((earlier) => earlier.includes(message))) messages.push(message);
  }
  return messages.join(': ').replaceAll('\n', ' ');
}

/** Returns the stacks of an error and its causes, without properties that drivers and parsers add, such as a record. */
export const formatStacks = (error: unknown): string =>
  findCauses(error)
    .map(({ stack }) => stack)
    .join('\ncaused by: ') || `threw a ${typeof error}`;
