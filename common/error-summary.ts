/** An error and its causes in one line: the outermost message often says only that something failed. */
export function errorSummary(error: unknown): string {
  const messages: string[] = [];
  for (let each = error; each instanceof Error; each = each.cause) {
    const message = each.message || (each as NodeJS.ErrnoException).code || each.name;
    if (!messages.some((earlier) => earlier.includes(message))) messages.push(message);
  }
  return messages.join(': ').replaceAll('\n', ' ');
}
