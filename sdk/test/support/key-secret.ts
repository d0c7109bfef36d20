import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Returns a well-formed secret that no service has issued: 32 random bytes and their checksum. */
export function unknownKey(): string {
  const [bytes, checksum] = [randomBytes(32), Buffer.alloc(4)];
  checksum.writeUInt32BE(crc32(bytes));
  return `lik_${Buffer.concat([bytes, checksum]).toString('base64url')}`;
}
