/**
 * Yields the lines of an input with their ends, each byte as a character.
 *
 * @param maxLength of a longer line the middle may be missing, but no less than this and one more is left; bytes
 */
export async function* linesOf(input: NodeJS.ReadableStream, maxLength: number): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of input) {
    const lines = (rest + (chunk as Buffer).toString('latin1')).split(/(?<=\n)/);
    rest = lines.at(-1)?.endsWith('\n') ? '' : (lines.pop() ?? '');
    yield* lines;
    rest = rest.slice(0, maxLength + 1);
  }
  if (rest !== '') yield rest;
}
