/** The length of the file's header, which precedes the header of the first page. */
const FILE_HEADER_BYTES = 100;

/** The length of a B-tree page's header by its first byte, the kind of page: inner pages and leaves, of indexes and tables. */
const HEADER_BYTES: Readonly<Record<number, number>> = { 2: 12, 5: 12, 10: 8, 13: 8 };

/**
 * Returns a SQLite file with zeros in the gap of each B-tree page, between the list of cells and the first cell. A page that
 * was split keeps copies of moved cells there, despite `secure_delete`, until a vacuum.
 */
export function withoutGaps(file: Buffer): Buffer {
  const bytes = Buffer.from(file);
  const pageSize = bytes.readUInt16BE(16);
  for (let begin = 0; begin < bytes.length; begin += pageSize) {
    const header = begin + (begin === 0 ? FILE_HEADER_BYTES : 0);
    const headerBytes = HEADER_BYTES[bytes.readUInt8(header)];
    // Other pages are free, or continue long cells.
    if (headerBytes === undefined) continue;
    const [cells, firstCell] = [bytes.readUInt16BE(header + 3), bytes.readUInt16BE(header + 5)];
    bytes.fill(0, header + headerBytes + 2 * cells, begin + firstCell);
  }
  return bytes;
}
