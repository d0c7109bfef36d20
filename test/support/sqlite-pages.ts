/** The bytes before the header of the first page, the header of the file. */
const FILE_HEADER_BYTES = 100;

/** The length of the header of a B-tree page, by its first byte: inner pages and leaves, of indexes and tables. */
const HEADER_BYTES: Readonly<Record<number, number>> = { 2: 12, 5: 12, 10: 8, 13: 8 };

/**
 * Returns a SQLite file without the gaps in its B-tree pages, between the list of cells and the first cell. A page that was
 * split keeps copies of moved cells there, despite `secure_delete`, until a vacuum.
 */
export function withoutGaps(file: Buffer): Buffer {
  const bytes = Buffer.from(file);
  const pageSize = bytes.readUInt16BE(16);
  for (let begin = 0; begin < bytes.length; begin += pageSize) {
    const header = begin + (begin === 0 ? FILE_HEADER_BYTES : 0);
    const headerBytes = HEADER_BYTES[bytes.readUInt8(header)];
    // Other pages continue long cells, or are free.
    if (headerBytes === undefined) continue;
    const [cells, firstCell] = [bytes.readUInt16BE(header + 3), bytes.readUInt16BE(header + 5)];
    bytes.fill(0, header + headerBytes + 2 * cells, begin + firstCell);
  }
  return bytes;
}
