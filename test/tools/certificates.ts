import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generate } from 'selfsigned';

/** A certificate and its private key; both PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority. */
export interface Authority extends Certificate {
  /**
   * Issues a certificate for a server or a client of that name.
   *
   * @param validity a year from now by default
   */
  issue(name: string, use: 'server' | 'client', validity?: readonly [from: Date, until: Date]): Promise<Certificate>;
}

const EC = { keyType: 'ec', algorithm: 'sha256' } as const;

/**
 * Creates an authority that is in no trust store.
 *
 * @param validity a year from now by default
 */
export async function anAuthority(name: string, validity?: readonly [from: Date, until: Date]): Promise<Authority> {
  const own = await generate([{ name: 'commonName', value: name }], {
    ...EC,
    ...(validity && { notBeforeDate: validity[0], notAfterDate: validity[1] }),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const ca = { cert: own.cert, key: own.private };
  return {
    ...ca,
    async issue(name, use, validity) {
      const issued = await generate([{ name: 'commonName', value: name }], {
        ...EC,
        ...(validity && { notBeforeDate: validity[0], notAfterDate: validity[1] }),
        ca,
        extensions: [
          { name: 'basicConstraints', cA: false, critical: true },
          { name: 'keyUsage', digitalSignature: true, critical: true },
          { name: 'extKeyUsage', serverAuth: use === 'server', clientAuth: use === 'client' },
          { name: 'subjectAltName', altNames: [{ type: 2, value: name }] },
        ],
      });
      return { cert: issued.cert, key: issued.private };
    },
  };
}

/** Writes a certificate and its key into a folder, replacing files of that name. Returns their paths. */
export function writeCertificate(folder: string, name: string, { cert, key }: Certificate): Certificate {
  const paths = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}-key.pem`) };
  writeFileSync(paths.cert, cert);
  writeFileSync(paths.key, key);
  return paths;
}
