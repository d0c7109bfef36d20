/** A record of a file, or what is wrong with it, with the line on which it begins. */
export type ReadRecord<Value> = { readonly line: number } & ({ readonly value: Value } | { readonly fault: string });

/**
 * Reads the record that begins at a position of a text.
 *
 * @param isWhole whether the text has the end of the file
 * @returns the record, and where the next one begins; undefined: the text does not have all of it
 */
export type RecordReader<Value> = (
  text: string,
  begin: number,
  isWhole: boolean,
) => { readonly value: Value; readonly end: number } | { readonly fault: string } | undefined;

/** More than the longest record that can be imported: what is longer has a quote that nothing closes. */
const MAX_RECORD_LENGTH = 256 * 1024;

const LINE_END = /\r\n?|\n/g;

/**
 * Reads the records of a file, piece by piece. Lines end with CRLF, LF or CR, also in one file. Behind a fault, reading
 * goes on with the next line: a quote that is missing must not cost the records after it.
 */
export async function* readRecords<Value>(
  pieces: AsyncIterable<string>,
  read: RecordReader<Value>,
): AsyncGenerator<ReadRecord<Value>> {
  let [text, at, line, isFaulty] = ['', 0, 1, false];
  for await (const { piece, isWhole } of withEnd(pieces)) {
    text = text.slice(at) + piece;
    at = 0;
    while (at < text.length) {
      const record = isFaulty ? restOfLine(text, at, isWhole) : read(text, at, isWhole);
      if (!record && text.length - at <= MAX_RECORD_LENGTH) break;
      if (!record || 'fault' in record) {
        if (!isFaulty) yield { line, fault: record?.fault ?? `has no end within ${MAX_RECORD_LENGTH} characters` };
        // Of a line without an end, nothing is kept but a character that may begin its line end.
        if (isFaulty) at = text.length - 1;
        isFaulty = true;
        continue;
      }
      if (!isFaulty) yield { line, value: record.value as Value };
      isFaulty = false;
      line += text.slice(at, record.end).match(LINE_END)?.length ?? 0;
      at = record.end;
    }
  }
}

/** Reads a line as a record. */
export const restOfLine: RecordReader<string> = (text, begin, isWhole) => {
  LINE_END.lastIndex = begin;
  const found = LINE_END.exec(text);
  if (!found) return isWhole ? { value: text.slice(begin), end: text.length } : undefined;
  const [lineEnd] = found;
  // The other half of a CRLF may follow.
  if (lineEnd === '\r' && LINE_END.lastIndex === text.length && !isWhole) return undefined;
  return { value: text.slice(begin, found.index), end: LINE_END.lastIndex };
};

/** Yields each piece, and an empty one with the end. */
async function* withEnd(pieces: AsyncIterable<string>) {
  for await (const piece of pieces) yield { piece, isWhole: false };
  yield { piece: '', isWhole: true };
}
