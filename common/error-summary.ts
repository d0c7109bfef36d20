/** An error in one line, with what it comes from: what is outermost often says no more than that something failed. */
export function errorSummary(error: unknown): string {
  const said: string[] = [];
  for (let each = error; each instanceof Error; each = each.cause) {
    const message = each.message || (each as NodeJS.ErrnoException).code || each.name;
    if (!said.some((earlier) => earlier.includes(message))) said.push(message);
  }
  return said.join(': ').replaceAll('\n', ' ');
}
