/*
 * How ids and hashes stand in the tables of leads: as their bytes, which take less than half of their text's.
 *
 * SQLite turns the text of a UUID into its bytes by `unhex(?, '-')`, and back by `hex(id)`. The driver gives texts in half the
 * time that it needs for bytes. What is no UUID was put there by another program or by hand: idText has a text for that, too,
 * which leads back to it and which nobody takes for a UUID.
 */

const SHA256_BYTES = 32;

/** @param hex what `hex(id)` gave */
export function idText(hex: string): string {
  const text = hex.toLowerCase();
  if (text.length !== 32) return text;
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}

/** @param sha256 in base64url */
export function hashBytes(sha256: string): Buffer {
  const bytes = Buffer.from(sha256, 'base64url');
  if (bytes.length !== SHA256_BYTES) throw new RangeError('a hash has 32 bytes');
  return bytes;
}

/** A hash as text; of anything else, a text that is none. */
export const hashText = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');

/** One hash after the other. */
export const hashesBytes = (hashes: readonly string[]): Buffer =>
  hashes.length === 1 ? hashBytes(hashes[0] as string) : Buffer.concat(hashes.map(hashBytes));

/** The hashes that stand one after the other; undefined when something else does. */
export function hashesIn(bytes: Uint8Array): string[] | undefined {
  if (bytes.length % SHA256_BYTES !== 0) return undefined;
  return Array.from({ length: bytes.length / SHA256_BYTES }, (_, index) =>
    hashText(bytes.subarray(index * SHA256_BYTES, (index + 1) * SHA256_BYTES)),
  );
}
