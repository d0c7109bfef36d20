import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { DAY_MS, plus } from '../support/builders.ts';
import { anAuthority } from '../support/certificates.ts';
import type { Settings } from './settings.ts';

/** What somebody shows a core whose callers show certificates, and whom they take for it. */
export interface Shown {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** The certificates of a world in which core and gateways show theirs to each other. */
export interface Certificates {
  readonly core: Settings;
  readonly gateway: Settings;
  /** What the CRM, and whoever else calls a core, shows. */
  readonly caller: Shown;
  /** Has whoever starts from now on show others, of the same authority. */
  renew(): Promise<void>;
}

/** How a client of gRPC shows it. */
export const channelWith = ({ ca, cert, key }: Shown): ChannelCredentials =>
  credentials.createSsl(Buffer.from(ca), Buffer.from(key), Buffer.from(cert));

/** A day ago, for clocks that are behind, and long enough. */
const validity = () => [plus(new Date(), -DAY_MS), plus(new Date(), 30 * DAY_MS)] as const;

/** @param folder where the files are */
export async function someCertificates(folder: string): Promise<Certificates> {
  const authority = await anAuthority('The authority of a world', validity());
  mkdirSync(folder, { recursive: true });
  const file = (name: string) => join(folder, `${name}.pem`);
  const issue = async (name: string, use: 'server' | 'client') => {
    const { cert, key } = await authority.issue(name, use, validity());
    writeFileSync(file(use), cert);
    writeFileSync(file(`${use}-key`), key);
  };
  const renew = async () => void (await Promise.all([issue('localhost', 'server'), issue('gateway', 'client')]));
  writeFileSync(file('authority'), authority.cert);
  await renew();
  return {
    core: {
      CORE_TLS_CERT_FILE: file('server'),
      CORE_TLS_KEY_FILE: file('server-key'),
      CORE_TLS_CLIENT_CA_FILE: file('authority'),
    },
    gateway: {
      CORE_CA_FILE: file('authority'),
      CORE_CLIENT_CERT_FILE: file('client'),
      CORE_CLIENT_KEY_FILE: file('client-key'),
    },
    caller: { ca: authority.cert, ...(await authority.issue('crm', 'client', validity())) },
    renew,
  };
}
