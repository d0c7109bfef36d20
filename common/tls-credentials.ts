import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { Logger } from 'pino';
import type { SettingFile } from './settings.ts';
import { watchFiles } from './watched-files.ts';

/** The files (PEM) of one side of TLS; each may be missing, but a certificate has its key. */
export interface TlsFiles {
  /** The chain that it shows, its own certificate first. */
  readonly cert?: SettingFile | undefined;
  /** The private key to that. */
  readonly key?: SettingFile | undefined;
  /** The authorities that the other side must have a certificate of. */
  readonly ca?: SettingFile | undefined;
}

/** What these files have: options for Node's TLS. */
export type TlsPem = { readonly [Part in keyof TlsFiles]?: string };

/** What one side of TLS shows and whom it trusts, as its files have it, which may change. */
export class TlsCredentials {
  readonly #files: TlsFiles;
  #inUse: Loaded;

  /** @throws Error when the files cannot be used, or do not fit together */
  constructor(files: TlsFiles) {
    this.#files = files;
    this.#inUse = load(files, pemOf(files));
  }

  get pem(): TlsPem {
    return this.#inUse.pem;
  }

  /** What connections are made with from now on; undefined without files. */
  get secureContext(): SecureContext | undefined {
    return this.#inUse.secureContext;
  }

  /** Until when what is in use is good, by the paths of the files. */
  get expiries(): ReadonlyMap<string, Date> {
    return this.#inUse.expiries;
  }

  /**
   * Takes what the files have whenever that changes, fits together, and is good by now. Connections that stand are left alone.
   *
   * @param taken is told after that
   * @returns ends that
   */
  follow(log: Logger, taken: (pem: TlsPem) => void = () => {}): () => void {
    const parts = partsOf(this.#files);
    const take = (...contents: string[]) => {
      const loaded = load(this.#files, Object.fromEntries(parts.map(([name], place) => [name, contents[place]])));
      refuseUnlessGoodNow(loaded.own, this.#files.cert?.path);
      taken(loaded.pem);
      this.#inUse = loaded;
      return { until: Object.fromEntries(loaded.expiries) };
    };
    return watchFiles({ what: 'certificates', files: parts.map(([, file]) => file), take }, log);
  }
}

/** What the files had when the settings were read. */
export const pemOf = (files: TlsFiles): TlsPem =>
  Object.fromEntries(partsOf(files).map(([name, { contents }]) => [name, contents.reveal()]));

const partsOf = ({ cert, key, ca }: TlsFiles): [keyof TlsFiles, SettingFile][] =>
  Object.entries({ cert, key, ca }).flatMap(([name, file]) => (file ? [[name as keyof TlsFiles, file]] : []));

/** The certificates of a text (PEM), in order. @throws Error when it has none, or not the whole of one */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  const certificates = pem
    .split(/(?=-----BEGIN )/)
    .filter((block) => /^-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/.test(block))
    .map((block) => new X509Certificate(block));
  if (certificates.length === 0) throw new Error('there is none');
  return certificates;
}

/** What files have, ready for use. */
interface Loaded {
  readonly pem: TlsPem;
  readonly secureContext: SecureContext | undefined;
  /** What is shown for itself. */
  readonly own: X509Certificate | undefined;
  readonly expiries: ReadonlyMap<string, Date>;
}

/** @throws Error when it cannot be used, or does not fit together; says so of which file */
function load({ cert, key, ca }: TlsFiles, pem: TlsPem): Loaded {
  const chain = cert ? readOf(cert, 'certificates', () => certificatesIn(pem.cert ?? '')) : [];
  const authorities = ca ? readOf(ca, 'certificates', () => certificatesIn(pem.ca ?? '')) : [];
  const [own] = chain;
  // Node itself takes a key of another kind than the certificate's, and shakes hands with nobody then.
  if (own && cert && key && !own.checkPrivateKey(readOf(key, 'private key', () => createPrivateKey(pem.key ?? '')))) {
    throw new Error(`${key.path} is the key of another certificate than that of ${cert.path}`);
  }
  const expiries = new Map<string, Date>();
  // A chain breaks with the first that ends. Of authorities those to come stand beside those that go.
  if (cert) expiries.set(cert.path, new Date(Math.min(...chain.map(endOf))));
  if (ca) expiries.set(ca.path, new Date(Math.max(...authorities.map(endOf))));
  const ready = { ...pem, ...(cert && { cert: oneText(chain) }), ...(ca && { ca: oneText(authorities) }) };
  return { pem: ready, secureContext: cert || ca ? createSecureContext(ready) : undefined, own, expiries };
}

/** Of a text in which a certificate begins in the line where the one before ends, OpenSSL reads the first alone. */
const oneText = (certificates: readonly X509Certificate[]): string =>
  certificates.map((each) => `${each}`.trim()).join('\n');

const endOf = ({ validToDate }: X509Certificate): number => validToDate.getTime();

function readOf<Read extends KeyObject | readonly X509Certificate[]>(
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

/** @throws Error */
function refuseUnlessGoodNow(own: X509Certificate | undefined, path: string | undefined): void {
  if (!own) return;
  const { validFromDate: from, validToDate: to } = own;
  if (from.getTime() > Date.now()) throw new Error(`${path} is not good before ${from.toISOString()}`);
  if (to.getTime() < Date.now()) throw new Error(`${path} has expired at ${to.toISOString()}`);
}
