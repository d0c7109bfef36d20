import { hash } from 'node:crypto';

/** Returns the SHA-256 of bytes or of a text in UTF-8; 32 bytes. */
export function sha256(data: string | Uint8Array): Buffer {
  // Asks for text, because Node makes the bytes of a hash outside of its pool, which takes three times as long as the hash.
  return Buffer.from(hash('sha256', data, 'binary'), 'binary');
}
