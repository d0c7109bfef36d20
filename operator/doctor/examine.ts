import type { Environment } from '../../common/settings.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { tlsToCore } from '../../gateway/core/core-connection.ts';
import { coreTls, readCoreConfig } from '../../src/config.ts';
import { examineCertificates } from './examine-certificates.ts';
import { examineCore } from './examine-core.ts';
import { examineGateway } from './examine-gateway.ts';
import { examineRedis } from './examine-redis.ts';
import { examineSettings } from './examine-settings.ts';
import { examineStore } from './examine-store.ts';
import { examined, type Finding } from './finding.ts';

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
