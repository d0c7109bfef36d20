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
import { examinePart, type Finding, Notes } from './finding.ts';

export type Part = 'core' | 'gateway' | 'relay';

/** How many days before its expiry a certificate should be renewed. */
const RENEW_DAYS = 30;

/** In the same file, because a process reloads its files when they change. */
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
  const examiners = {
    core: () =>
      examineProcess(
        'core',
        () => readCoreConfig(env),
        coreTls,
        (config) => [examinePart('database', (notes) => examineStore(notes, config.DATABASE_URL.reveal()))],
      ),
    gateway: () =>
      examineProcess(
        'gateway',
        () => readGatewayConfig(env),
        tlsToCore,
        (config) => [
          examinePart('core', (notes) => examineCore(notes, config)),
          examinePart('Redis', (notes) => examineRedis(notes, config)),
          examinePart('gateway', (notes) => examineGateway(notes, config.PUBLIC_URL)),
        ],
      ),
    relay: () =>
      examineProcess(
        'relay',
        () => readRelayConfig(env),
        tlsToCore,
        (config) => [examinePart('core', (notes) => examineFeed(notes, config))],
      ),
  };
  const found = (await Promise.all(parts.map((part) => examiners[part]()))).flat();
  if (!onProgress) return found;
  const hasFaultySettings = found.some(({ what, verdict }) => what === 'core settings' && verdict === 'fault');
  // Runs last, because reading a file blocks the other checks.
  const recordFindings = await examinePart('records', (notes) =>
    hasFaultySettings
      ? notes.fault('were not read: correct the settings')
      : examineRecords(notes, readDatabaseUrl(env).reveal(), onProgress),
  );
  return [...found, ...recordFindings];
}

/** Examines the settings of a process, its certificates and, if the settings are valid, its other dependencies. */
async function examineProcess<Config extends IgnoredSettings>(
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

function examineCertificates(part: Part, files: TlsFiles): readonly Finding[] {
  const notes = new Notes(`${part}'s certificates`);
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
