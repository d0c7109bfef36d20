import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { DAY_MS, plus } from '../support/builders.ts';
import { anAuthority } from '../support/certificates.ts';
import type { Settings } from './settings.ts';

/** A client certificate with its key, for a core that requires mutual TLS, and the authority that the client trusts. */
export interface ClientCertificate {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** The certificates of a world with mutual TLS between core and gateways. */
export interface Certificates {
  readonly core: Settings;
  readonly gateway: Settings;
  /** The client certificate of the CRM and of all other callers of a core. */
  readonly caller: ClientCertificate;
  /** Replaces the certificates of core and gateways, by the same authority, for processes that start later. */
  renew(): Promise<void>;
}

/** Returns gRPC channel credentials with this certificate. */
export const channelWith = ({ ca, cert, key }: ClientCertificate): ChannelCredentials =>
  credentials.createSsl(Buffer.from(ca), Buffer.from(key), Buffer.from(cert));

/** Begins a day ago, for clocks that are behind; ends in 30 days, longer than any run. */
const validity = () => [plus(new Date(), -DAY_MS), plus(new Date(), 30 * DAY_MS)] as const;

/** @param folder the folder for the certificate files */
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
