/*
 * The tables of leads store ids and hashes as bytes, which take less than half of the space of texts.
 *
 * `unhex(?, '-')` turns the text of a UUID into bytes, and `hex(id)` back, because the driver returns texts twice as
 * fast as bytes. Another id, which this service did not write, gets a unique text from idText that is not a UUID.
 */

/** The number of bytes of the id of a lead. */
export const UUID_BYTES = 16;

const SHA256_BYTES = 32;

/** @param hex the result of `hex(id)` */
export function idText(hex: string): string {
  const text = hex.toLowerCase();
  if (text.length !== 2 * UUID_BYTES) return text;
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}

/** @param sha256 in base64url */
export function hashBytes(sha256: string): Buffer {
  const bytes = Buffer.from(sha256, 'base64url');
  if (bytes.length !== SHA256_BYTES) throw new RangeError('a hash must have 32 bytes');
  return bytes;
}

/** A hash as base64url; other bytes give a text that is not a hash. */
export const hashText = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');

/** Concatenates hashes. */
export const hashesBytes = (hashes: readonly string[]): Buffer =>
  hashes.length === 1 ? hashBytes(hashes[0] as string) : Buffer.concat(hashes.map(hashBytes));

/** Splits concatenated hashes; undefined: the length is not a multiple of a hash's. */
export function hashesIn(bytes: Uint8Array): string[] | undefined {
  if (bytes.length % SHA256_BYTES !== 0) return undefined;
  return Array.from({ length: bytes.length / SHA256_BYTES }, (_, index) =>
    hashText(bytes.subarray(index * SHA256_BYTES, (index + 1) * SHA256_BYTES)),
  );
}
