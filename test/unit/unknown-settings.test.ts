import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type Environment, type IgnoredSettings, SettingsError, type SettingsTable } from '../../common/settings.ts';
import { gatewaySettings, readGatewayConfig } from '../../gateway/config.ts';
import { readRelayConfig, relaySettings } from '../../relay/config.ts';
import { coreSettings, readCoreConfig } from '../../src/config.ts';

const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const endpointsFile = join(folder, 'endpoints.json');
writeFileSync(endpointsFile, '{ "endpoints": {} }');

interface Process {
  readonly what: string;
  readonly table: SettingsTable;
  readonly read: (env: Environment) => IgnoredSettings;
}

const PROCESSES: readonly Process[] = [
  { what: 'core', table: coreSettings, read: readCoreConfig },
  { what: 'gateway', table: gatewaySettings, read: readGatewayConfig },
  // It does not start without its file.
  {
    what: 'relay',
    table: relaySettings,
    read: (env) => readRelayConfig({ RELAY_ENDPOINTS_FILE: endpointsFile, ...env }),
  },
];

/** Returns the faults of an environment, or the settings that a process logs as unset. */
function said({ read }: Process, env: Environment): string {
  try {
    return read(env).ignored.join();
  } catch (error) {
    if (error instanceof SettingsError) return error.faults.join();
    throw error;
  }
}

/** Whether a variable is refused or named in the log. */
const isSaid = (process: Process, name: string, value: string) => said(process, { [name]: value }).includes(name);

const SETTINGS = PROCESSES.flatMap((process) =>
  Object.entries(process.table).map(([name, setting]) => ({ ...process, process, name, setting })),
);

/** The variables that a setting is read from. */
const variablesOf = ({ name, setting }: (typeof SETTINGS)[number]) =>
  setting.fromFile ? [name, `${name}_FILE`] : [name];

/** Names with a letter fewer, more or other at each place behind the first word, in lower case, and with other words. */
function misspelt(name: string): string[] {
  const [first = '', ...others] = name.split('_');
  const rest = others.join('_');
  const at = [...rest].map((_, index) => [rest.slice(0, index), rest.slice(index)] as const);
  const ends = at.flatMap(([a, b]) => [a + b.slice(1), `${a}X${b}`, `${a}X${b.slice(1)}`]);
  return [...ends, `OTHER_${rest}`, `${rest}_OTHER`, ''].map((end) => `${first}_${end}`).concat(name.toLowerCase());
}

/** Other programs have variables that begin so. */
const isShared = (name: string) => /^(?:DATABASE|LOG|OTEL|PUBLIC)_/.test(name);

const NAMES = new Set(SETTINGS.flatMap(variablesOf));

// @proves crashes-13
describe('a variable is refused or named in the log', () => {
  test.each(SETTINGS)('when it is blank: $what, $name', (setting) => {
    for (const name of variablesOf(setting)) {
      for (const blank of ['', ' ', '\t\n']) expect(isSaid(setting.process, name, blank), name).toBe(true);
    }
    if (setting.setting.protects) expect(() => setting.read({ [setting.name]: '' })).toThrow(SettingsError);
  });

  test.each(SETTINGS.filter(({ name }) => !isShared(name)))('when its name is misspelt: $what, $name', (setting) => {
    const names = variablesOf(setting)
      .flatMap((name) => [...misspelt(name), `${name}_FILE`, name.replace(/_FILE$/, '')])
      .filter((name) => !NAMES.has(name));
    expect(names.length).toBeGreaterThan(10);
    // The value is a valid one, so that only the name can be the reason.
    for (const name of names)
      expect(said(setting.process, { [name]: '1' })).toBe(
        `${name} is not a setting: docs/reference/settings.md has all names; correct it, or remove it`,
      );
  });

  test.each(SETTINGS)('or is let be, as Kubernetes gives it for a Service: $what, $name', ({ process, name }) => {
    const service = name.replace(/_[A-Z]+$/, '');
    const injected = {
      [`${service}_SERVICE_HOST`]: '10.96.12.7',
      [`${service}_SERVICE_PORT`]: '50051',
      [`${service}_SERVICE_PORT_GRPC`]: '50051',
      [`${service}_PORT`]: 'tcp://10.96.12.7:50051',
      [`${service}_1_PORT`]: 'tcp://10.96.12.7:50051',
      [`${service}_PORT_50051_TCP`]: 'tcp://10.96.12.7:50051',
      [`${service}_PORT_50051_TCP_PROTO`]: 'tcp',
      [`${service}_PORT_50051_TCP_PORT`]: '50051',
      [`${service}_PORT_50051_TCP_ADDR`]: '10.96.12.7',
    };
    const ignored = Object.keys(process.table).filter((known) => known === `${service}_PORT`);
    expect(process.read(injected)).toMatchObject({ ignored });
  });
});

test.each(PROCESSES)('the $what accepts the settings of the other, and what providers set', ({ read, table }) => {
  const others = PROCESSES.flatMap((other) => variablesOfTable(other.table)).filter(
    (name) => !variablesOfTable(table).includes(name),
  );
  const ofRedis = ['HOST', 'PORT', 'DB', 'USER', 'USERNAME', 'PASSWORD', 'TLS_URL', 'PUBLIC_URL', 'PRIVATE_URL'];
  const provided = [...ofRedis.map((name) => `REDIS_${name}`), 'PORT', 'HOST', 'DATABASE_NAME', 'PUBLIC_KEY'];
  const env = Object.fromEntries([...others, ...provided].map((name) => [name, 'x']));
  expect(read(env)).toMatchObject({ ignored: [] });
});

const variablesOfTable = (table: SettingsTable) =>
  Object.entries(table).flatMap(([name, { fromFile }]) => (fromFile ? [name, `${name}_FILE`] : [name]));

test('the address of a Service in place of a port leaves the default', () => {
  expect(readCoreConfig({ CORE_PORT: 'tcp://10.96.12.7:50051' }).CORE_PORT).toBe(50_051);
  expect(readGatewayConfig({ GATEWAY_PORT: 'tcp://10.96.12.7:8080' }).GATEWAY_PORT).toBe(8080);
});
