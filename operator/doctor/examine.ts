import { tlsToCore } from '../../common/core-connection.ts';
import { errorSummary } from '../../common/error-summary.ts';
import { type Environment, type IgnoredSettings, SettingsError } from '../../common/settings.ts';
import { TlsCredentials, type TlsFiles } from '../../common/tls-credentials.ts';
import { DAY_MS } from '../../common/units.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { readRelayConfig } from '../../relay/config.ts';
import { coreTls, readCoreConfig, readDatabaseUrl } from '../../src/config.ts';
import { examineRecords } from './examine-records.ts';
import { examineCore, examineFeed, examineGateway, examineRedis } from './examine-servers.ts';
import { examineStore } from './examine-store.ts';
import { examined, type Finding, Notes } from './finding.ts';

export type Part = 'core' | 'gateway' | 'relay';

/** How many days before its expiry a certificate should be renewed. */
const RENEW_DAYS = 30;

/** A process reloads its files when they change. */
const REMEDY = 'renew it, in the same file';

/**
 * Examines everything that a deployment's processes depend on, from this machine and with these settings.
 *
 * @param onProgress gets the progress of reading every record; without it, records are not read
 */
export async function examine(
  parts: readonly Part[],
  env: Environment,
  onProgress?: (text: string) => void,
): Promise<readonly Finding[]> {
  const sides = {
    core: () =>
      examineSide(
        'core',
        () => readCoreConfig(env),
        coreTls,
        (config) => [examined('database', (notes) => examineStore(notes, config.DATABASE_URL.reveal()))],
      ),
    gateway: () =>
      examineSide(
        'gateway',
        () => readGatewayConfig(env),
        tlsToCore,
        (config) => [
          examined('core', (notes) => examineCore(notes, config)),
          examined('Redis', (notes) => examineRedis(notes, config)),
          examined('gateway', (notes) => examineGateway(notes, config.PUBLIC_URL)),
        ],
      ),
    relay: () =>
      examineSide(
        'relay',
        () => readRelayConfig(env),
        tlsToCore,
        (config) => [examined('core', (notes) => examineFeed(notes, config))],
      ),
  };
  const found = (await Promise.all(parts.map((part) => sides[part]()))).flat();
  if (!onProgress) return found;
  const hasFaultySettings = found.some(({ what, verdict }) => what === 'core settings' && verdict === 'fault');
  // Runs last, because reading a file blocks the other checks.
  const ofRecords = await examined('records', (notes) =>
    hasFaultySettings
      ? notes.fault('were not read: correct the settings')
      : examineRecords(notes, readDatabaseUrl(env).reveal(), onProgress),
  );
  return [...found, ...ofRecords];
}

/** Examines the settings of a process, its certificates and, if the settings are valid, its other dependencies. */
async function examineSide<Config extends IgnoredSettings>(
  part: Part,
  read: () => Config,
  readTlsFiles: (config: Config) => TlsFiles,
  examineOthers: (config: Config) => Promise<readonly Finding[]>[],
): Promise<readonly Finding[]> {
  const notes = new Notes(`${part} settings`);
  try {
    const config = read();
    notes.ok('are valid and consistent');
    for (const name of config.ignored) notes.warning(`${name} counts as unset: remove it, or give it a value`);
    const others = await Promise.all(examineOthers(config));
    return [...notes.findings, ...examineCertificates(part, readTlsFiles(config)), ...others.flat()];
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    for (const fault of error.faults) notes.fault(fault);
    return notes.findings;
  }
}

function examineCertificates(whose: Part, files: TlsFiles): readonly Finding[] {
  const notes = new Notes(`${whose}'s certificates`);
  try {
    const { expiries, validFrom } = new TlsCredentials(files).loaded;
    for (const [file, expiry] of expiries) noteExpiry(notes, file, expiry);
    if (validFrom && validFrom.getTime() > Date.now())
      notes.fault(`${files.cert?.path} is not valid before ${validFrom.toISOString()}`);
  } catch (error) {
    notes.fault(errorSummary(error));
  }
  return notes.findings;
}

function noteExpiry(notes: Notes, file: string, expiry: Date): void {
  const daysLeft = Math.floor((expiry.getTime() - Date.now()) / DAY_MS);
  if (daysLeft < 0) notes.fault(`${file} expired at ${expiry.toISOString()}: ${REMEDY}`);
  else if (daysLeft < RENEW_DAYS) notes.warning(`${file} expires in ${daysLeft} days: ${REMEDY}`);
  else notes.ok(`${file} is valid for ${daysLeft} days, until ${expiry.toISOString()}`);
}
