import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { Logger } from 'pino';
import type { SettingFile } from './settings.ts';
import { watchFiles } from './watched-files.ts';

/** The PEM files of one side of TLS. Each is optional, but a certificate requires its key. */
export interface TlsFiles {
  /** The certificate chain, own certificate first. */
  readonly cert?: SettingFile | undefined;
  /** The private key of the own certificate. */
  readonly key?: SettingFile | undefined;
  /** The authorities that may have signed the peer's certificate. */
  readonly ca?: SettingFile | undefined;
}

/** The contents of these files, as options for Node's TLS. */
export type TlsPem = { readonly [Part in keyof TlsFiles]?: string };

/** The certificates, key and authorities of one side of TLS, reloaded when their files change. */
export class TlsCredentials {
  readonly #files: TlsFiles;
  #loaded: Loaded;

  /** @throws Error when the files are invalid or do not match */
  constructor(files: TlsFiles) {
    this.#files = files;
    this.#loaded = load(files, readPem(files));
  }

  /** The contents in use. */
  get loaded(): Loaded {
    return this.#loaded;
  }

  /**
   * Reloads the files when they change, if they match and are valid now. Established connections are not affected.
   *
   * @param onReload called with the new contents
   * @returns stops watching
   */
  watch(log: Logger, onReload: (pem: TlsPem) => void = () => {}): () => void {
    const parts = listTlsFiles(this.#files);
    const reload = (...contents: string[]) => {
      const loaded = load(this.#files, Object.fromEntries(parts.map(([name], index) => [name, contents[index]])));
      throwUnlessValidNow(loaded.own, this.#files.cert?.path);
      onReload(loaded.pem);
      this.#loaded = loaded;
      return { until: Object.fromEntries(loaded.expiries) };
    };
    return watchFiles({ what: 'certificates', files: parts.map(([, file]) => file), reload }, log);
  }
}

const readPem = (files: TlsFiles): TlsPem =>
  Object.fromEntries(listTlsFiles(files).map(([name, { contents }]) => [name, contents.reveal()]));

const listTlsFiles = ({ cert, key, ca }: TlsFiles): [keyof TlsFiles, SettingFile][] =>
  Object.entries({ cert, key, ca }).flatMap(([name, file]) => (file ? [[name as keyof TlsFiles, file]] : []));

/** Returns the certificates in a PEM text, in order. @throws Error when there is none, or one is incomplete */
function certificatesIn(pem: string): readonly X509Certificate[] {
  const certificates = pem
    .split(/(?=-----BEGIN )/)
    .filter((block) => /^-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/.test(block))
    .map((block) => new X509Certificate(block));
  if (certificates.length === 0) throw new Error('no certificate found');
  return certificates;
}

interface Loaded {
  readonly pem: TlsPem;
  /** The context for new connections; undefined without files. */
  readonly secureContext: SecureContext | undefined;
  /** The first certificate of the chain. */
  readonly own: X509Certificate | undefined;
  /** Expiry times by file path. */
  readonly expiries: ReadonlyMap<string, Date>;
  /** When all certificates of the chain have become valid; undefined without a chain. */
  readonly validFrom: Date | undefined;
}

/** @throws Error that names the invalid or mismatched file */
function load({ cert, key, ca }: TlsFiles, pem: TlsPem): Loaded {
  const chain = cert ? parsePem(cert, 'certificates', () => certificatesIn(pem.cert ?? '')) : [];
  const authorities = ca ? parsePem(ca, 'certificates', () => certificatesIn(pem.ca ?? '')) : [];
  const [own] = chain;
  // Node accepts a key of a different type than the certificate's, and then every handshake fails.
  if (own && cert && key && !own.checkPrivateKey(parsePem(key, 'private key', () => createPrivateKey(pem.key ?? '')))) {
    throw new Error(`${key.path} is not the key of the certificate in ${cert.path}`);
  }
  const expiries = new Map<string, Date>();
  // A chain expires with its first certificate to expire. New authorities are listed beside expiring ones, so the last to expire counts.
  if (cert) expiries.set(cert.path, new Date(Math.min(...chain.map(toExpiry))));
  if (ca) expiries.set(ca.path, new Date(Math.max(...authorities.map(toExpiry))));
  const validFrom = cert && new Date(Math.max(...chain.map(({ validFromDate }) => validFromDate.getTime())));
  const ready = { ...pem, ...(cert && { cert: pemText(chain) }), ...(ca && { ca: pemText(authorities) }) };
  return { pem: ready, secureContext: cert || ca ? createSecureContext(ready) : undefined, own, expiries, validFrom };
}

/** Puts each certificate on its own line: OpenSSL ignores one that begins where the previous line ends. */
const pemText = (certificates: readonly X509Certificate[]): string =>
  certificates.map((each) => `${each}`.trim()).join('\n');

const toExpiry = ({ validToDate }: X509Certificate): number => validToDate.getTime();

function parsePem<Read extends KeyObject | readonly X509Certificate[]>(
  { path }: SettingFile,
  what: string,
  read: () => Read,
): Read {
  try {
    return read();
  } catch (error) {
    throw new Error(`${path} has no ${what} (PEM) that can be read`, { cause: error });
  }
}

function throwUnlessValidNow(own: X509Certificate | undefined, path: string | undefined): void {
  if (!own) return;
  const { validFromDate: from, validToDate: to } = own;
  if (from.getTime() > Date.now()) throw new Error(`${path} is not valid before ${from.toISOString()}`);
  if (to.getTime() < Date.now()) throw new Error(`${path} expired at ${to.toISOString()}`);
}
