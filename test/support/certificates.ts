import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generate } from 'selfsigned';

/** A certificate with its private key; both PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Who signs certificates. */
export interface Authority extends Certificate {
  /**
   * Makes a certificate, for a server that is called by its name or for a client of that name.
   *
   * @param validity from when to when; a year from now on unless told
   */
  issue(name: string, use: 'server' | 'client', validity?: readonly [from: Date, until: Date]): Promise<Certificate>;
}

const EC = { keyType: 'ec', algorithm: 'sha256' } as const;

/**
 * Makes an authority that nobody trusts yet.
 *
 * @param validity from when to when; a year from now on unless told
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

/** Writes a certificate and its key into a folder, in place of what stands there under that name; gives their paths. */
export function writeCertificate(folder: string, name: string, { cert, key }: Certificate): Certificate {
  const paths = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}-key.pem`) };
  writeFileSync(paths.cert, cert);
  writeFileSync(paths.key, key);
  return paths;
}
