import { HTTP_WITHIN, USER_AGENT } from './outcomes.ts';

/** The address of the API: no user or password before the host, and no parameters. */
const BASE_URL = /^https?:\/\/[^\s/?#@\0]+(?:\/[^\s?#\0]*)?$/i;

/** A path that the client appends itself. */
const PATH_OF_API = /\/v1(?:\/integrations(?:\/leads)?)?\/*$/;

/** The form of a key's secret: 32 random bytes and their CRC-32, in base64url. */
const KEY = /^lik_[A-Za-z0-9_-]{48}$/;
const KEY_LENGTH = 52;

/** Whether others on the network can read requests to the address. */
export const isOpenToOthers = (baseUrl: string): boolean =>
  /^http:/i.test(baseUrl) && !new RegExp(HTTP_WITHIN, 'i').test(baseUrl);

/** Returns the address of the leads. @throws TypeError when the base URL is malformed, or open to others */
export function toLeadsUrl(baseUrl: string, allowHttp: boolean): string {
  if (!BASE_URL.test(baseUrl) || PATH_OF_API.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw new TypeError('baseUrl must be an address such as https://api.example.com, without /v1 and credentials');
  }
  if (!allowHttp && isOpenToOthers(baseUrl)) {
    throw new TypeError(
      'baseUrl must begin with https, or others can read the key and the leads; allowHttp permits http',
    );
  }
  return new URL(`${baseUrl.replace(/\/+$/, '')}/v1/integrations/leads`).href;
}

/** Returns the headers of all requests with a key. @throws TypeError when the key is malformed; its message omits the key */
export function toAuthorization(apiKey: string): Headers {
  const fault = faultOfKey(apiKey);
  if (fault !== undefined) {
    throw new TypeError(`apiKey must be the whole secret of an API key, lik_ and 48 characters: ${fault}`);
  }
  // All runtimes decode gzip. workerd sends no Accept-Encoding by itself, which permits any encoding.
  return new Headers({ authorization: `Bearer ${apiKey}`, 'user-agent': USER_AGENT, 'accept-encoding': 'gzip' });
}

/** Returns the fault of a key, without the key, in the words of all clients. */
export function faultOfKey(apiKey: string): string | undefined {
  if (typeof apiKey !== 'string' || apiKey === '') return 'it is empty';
  if (/^Bearer/i.test(apiKey)) return 'it begins with Bearer, which the client adds itself';
  if (/\s/.test(apiKey)) return 'it has white space';
  if (apiKey.length !== KEY_LENGTH) return 'it has another length';
  if (!KEY.test(apiKey)) return 'it has other characters';
  return hasChecksum(decodeBytes(apiKey.slice(4))) ? undefined : 'its checksum is wrong, so it has a wrong character';
}

function decodeBytes(base64url: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64url.replaceAll('-', '+').replaceAll('_', '/')), (byte) => byte.charCodeAt(0));
}

function hasChecksum(bytes: Uint8Array<ArrayBuffer>): boolean {
  let crc = ~0;
  for (const byte of bytes.subarray(0, 32)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc === new DataView(bytes.buffer).getInt32(32);
}

/** @throws TypeError when a time limit is not a positive number of milliseconds */
export function requireLimits(limits: Readonly<Record<string, unknown>>): void {
  for (const [name, ms] of Object.entries(limits)) {
    if (!(typeof ms === 'number' && ms > 0 && ms < Number.POSITIVE_INFINITY)) {
      throw new TypeError(`${name} must be a positive number of milliseconds`);
    }
  }
}

/** @throws TypeError in a browser, where each visitor could read the key */
export function requireServer(): void {
  const { document, process }: { document?: unknown; process?: { versions?: { node?: string } } } = globalThis;
  // Tests of servers may have a document, too.
  if (document !== undefined && !process?.versions?.node) {
    throw new TypeError('a client belongs on a server: in a browser each visitor could read the key');
  }
}
