import { createPrivateKey, type X509Certificate } from 'node:crypto';
import { errorSummary } from '../../common/error-summary.ts';
import { type Environment, SettingsError, type UnusedVariables } from '../../common/settings.ts';
import { certificatesIn, pemOf, type TlsFiles } from '../../common/tls-credentials.ts';
import { DAY_MS } from '../../common/units.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { tlsToCore } from '../../gateway/core/core-connection.ts';
import { coreTls, readCoreConfig } from '../../src/config.ts';
import { examineCore, examineGateway, examineRedis } from './examine-servers.ts';
import { examineStore } from './examine-store.ts';
import { examined, type Finding, Notes } from './finding.ts';

/** Reads settings; undefined when they have faults, each of which becomes a finding. */
function examineSettings<Config extends UnusedVariables>(
  what: string,
  read: () => Config,
): [Config | undefined, readonly Finding[]] {
  const notes = new Notes(what);
  try {
    const config = read();
    notes.ok('are valid and consistent');
    for (const name of config.ignored) notes.warning(`${name} counts as unset: remove it, or give it a value`);
    for (const name of config.unknown)
      notes.warning(`${name} is no setting and has no effect: rename it, or remove it`);
    return [config, notes.findings];
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    for (const fault of error.faults) notes.fault(fault);
    return [undefined, notes.findings];
  }
}

/** How long before its expiry a certificate should be renewed; days. */
const RENEW_DAYS = 30;

/** A process reloads its files when they change. */
const REMEDY = 'renew it, in the same file';

/**
 * Examines the TLS certificates and the key of a process. A chain is valid while all of its certificates are, a list of
 * authorities while any of them is: during a rotation it has both the old and the new one.
 */
function examineCertificates(whose: string, files: TlsFiles): readonly Finding[] {
  const { cert, key, ca } = pemOf(files);
  return [
    ...examinePem(`${whose}'s certificate`, cert, (notes, chain) => {
      if (key && !chain[0]?.checkPrivateKey(createPrivateKey(key)))
        notes.fault('its key belongs to another certificate');
      examineDates(notes, Math.max(...chain.map(startOf)), Math.min(...chain.map(endOf)));
    }),
    ...examinePem(`${whose}'s authorities`, ca, (notes, authorities) =>
      examineDates(notes, Math.min(...authorities.map(startOf)), Math.max(...authorities.map(endOf))),
    ),
  ];
}

const startOf = ({ validFromDate }: X509Certificate): number => validFromDate.getTime();
const endOf = ({ validToDate }: X509Certificate): number => validToDate.getTime();

type Examine = (notes: Notes, certificates: readonly X509Certificate[]) => void;

/** @param pem undefined: not set, no findings */
function examinePem(what: string, pem: string | undefined, examine: Examine): readonly Finding[] {
  if (pem === undefined) return [];
  const notes = new Notes(what);
  try {
    examine(notes, certificatesIn(pem));
  } catch (error) {
    notes.fault(`cannot be read: ${errorSummary(error)}`);
  }
  return notes.findings;
}

/** @param from and `until`: milliseconds since 1970 */
function examineDates(notes: Notes, from: number, until: number): void {
  const daysLeft = Math.floor((until - Date.now()) / DAY_MS);
  const end = new Date(until).toISOString();
  if (from > Date.now()) notes.fault(`is not valid before ${new Date(from).toISOString()}`);
  else if (daysLeft < 0) notes.fault(`expired at ${end}: ${REMEDY}`);
  else if (daysLeft < RENEW_DAYS) notes.warning(`expires in ${daysLeft} days: ${REMEDY}`);
  else notes.ok(`is valid for ${daysLeft} days, until ${end}`);
}

/** The process whose dependencies are examined. */
export type Part = 'core' | 'gateway';

/** Examines everything that the processes of a deployment depend on, from this machine and with these settings. */
export async function examine(parts: readonly Part[], env: Environment): Promise<readonly Finding[]> {
  const findings = parts.map((part) => (part === 'core' ? examineCoreSide(env) : examineGatewaySide(env)));
  return (await Promise.all(findings)).flat();
}

async function examineCoreSide(env: Environment): Promise<readonly Finding[]> {
  const [config, findings] = examineSettings('core settings', () => readCoreConfig(env));
  if (!config) return findings;
  return [
    ...findings,
    ...examineCertificates('core', coreTls(config)),
    ...(await examined('database', (notes) => examineStore(notes, config.DATABASE_URL.reveal()))),
  ];
}

async function examineGatewaySide(env: Environment): Promise<readonly Finding[]> {
  const [config, findings] = examineSettings('gateway settings', () => readGatewayConfig(env));
  if (!config) return findings;
  const remote = await Promise.all([
    examined('core', (notes) => examineCore(notes, config)),
    examined('Redis', (notes) => examineRedis(notes, config)),
    examined('gateway', (notes) => examineGateway(notes, config.PUBLIC_URL)),
  ]);
  return [...findings, ...examineCertificates('gateway', tlsToCore(config)), ...remote.flat()];
}
