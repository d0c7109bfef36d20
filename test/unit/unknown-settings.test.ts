import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type Environment, type IgnoredSettings, type Parsers, SettingsError } from '../../common/settings.ts';
import { findTraits, listVariables, SETTING_NAMES } from '../../common/settings-table.ts';
import { gatewaySettings, readGatewayConfig } from '../../gateway/config.ts';
import { readRelayConfig, relaySettings } from '../../relay/config.ts';
import { coreSettings, readCoreConfig } from '../../src/config.ts';

const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const endpointsFile = join(folder, 'endpoints.json');
writeFileSync(endpointsFile, '{ "endpoints": {} }');

interface Process {
  readonly what: string;
  readonly parsers: Parsers;
  readonly read: (env: Environment) => IgnoredSettings;
}

const PROCESSES: readonly Process[] = [
  { what: 'core', parsers: coreSettings, read: readCoreConfig },
  { what: 'gateway', parsers: gatewaySettings, read: readGatewayConfig },
  // The relay does not start without its file.
  {
    what: 'relay',
    parsers: relaySettings,
    read: (env) => readRelayConfig({ RELAY_ENDPOINTS_FILE: endpointsFile, ...env }),
  },
];

/** Returns the faults of an environment, or the settings that a process logs as ignored. */
function report({ read }: Process, env: Environment): string {
  try {
    return read(env).ignored.join();
  } catch (error) {
    if (error instanceof SettingsError) return error.faults.join();
    throw error;
  }
}

/** Whether a variable is refused or named in the log. */
const isReported = (process: Process, name: string, value: string) => report(process, { [name]: value }).includes(name);

const listSettings = ({ parsers }: Process) => SETTING_NAMES.filter((name) => parsers[name]);

const SETTINGS = PROCESSES.flatMap((process) => listSettings(process).map((name) => ({ ...process, process, name })));

/** Returns the variables from which a setting is read. */
const settingVariables = ({ name }: (typeof SETTINGS)[number]) => listVariables([name]);

/** Returns the name with a letter missing, added or changed after its first word, in lower case, and with other words. */
function misspelt(name: string): string[] {
  const [first = '', ...others] = name.split('_');
  const rest = others.join('_');
  const at = [...rest].map((_, index) => [rest.slice(0, index), rest.slice(index)] as const);
  const ends = at.flatMap(([a, b]) => [a + b.slice(1), `${a}X${b}`, `${a}X${b.slice(1)}`]);
  return [...ends, `OTHER_${rest}`, `${rest}_OTHER`, ''].map((end) => `${first}_${end}`).concat(name.toLowerCase());
}

/** Whether other programs may have variables with this prefix, too. */
const isShared = (name: string) => /^(?:DATABASE|LOG|OTEL|PUBLIC)_/.test(name);

const NAMES = new Set(SETTINGS.flatMap(settingVariables));

// @proves crashes-13
describe('a variable is refused or named in the log', () => {
  test.each(SETTINGS)('a blank variable is refused or named in the log: $what, $name', (setting) => {
    for (const name of settingVariables(setting)) {
      for (const blank of ['', ' ', '\t\n']) expect(isReported(setting.process, name, blank), name).toBe(true);
    }
    if (findTraits(setting.name).protects) expect(() => setting.read({ [setting.name]: '' })).toThrow(SettingsError);
  });

  test.each(SETTINGS.filter(({ name }) => !isShared(name)))('a misspelt name is refused: $what, $name', (setting) => {
    const names = settingVariables(setting)
      .flatMap((name) => [...misspelt(name), `${name}_FILE`, name.replace(/_FILE$/, '')])
      .filter((name) => !NAMES.has(name));
    expect(names.length).toBeGreaterThan(10);
    // The value is valid, so that only the name can be the reason.
    for (const name of names)
      expect(report(setting.process, { [name]: '1' })).toBe(
        `${name} is not a setting: docs/reference/settings.md has all names; correct it, or remove it`,
      );
  });

  test.each(SETTINGS)('variables Kubernetes sets for a Service are accepted: $what, $name', ({ process, name }) => {
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
    const ignored = listSettings(process).filter((known) => known === `${service}_PORT`);
    expect(process.read(injected)).toMatchObject({ ignored });
  });
});

test.each(PROCESSES)('the $what accepts variables of other processes and of hosting providers', (process) => {
  const own = listVariables(listSettings(process));
  const others = PROCESSES.flatMap((other) => listVariables(listSettings(other))).filter((name) => !own.includes(name));
  const redisNames = ['HOST', 'PORT', 'DB', 'USER', 'USERNAME', 'PASSWORD', 'TLS_URL', 'PUBLIC_URL', 'PRIVATE_URL'];
  const provided = [...redisNames.map((name) => `REDIS_${name}`), 'PORT', 'HOST', 'DATABASE_NAME', 'PUBLIC_KEY'];
  const env = Object.fromEntries([...others, ...provided].map((name) => [name, 'x']));
  expect(process.read(env)).toMatchObject({ ignored: [] });
});

test("a Service's address instead of a port leaves the default port", () => {
  expect(readCoreConfig({ CORE_PORT: 'tcp://10.96.12.7:50051' }).CORE_PORT).toBe(50_051);
  expect(readGatewayConfig({ GATEWAY_PORT: 'tcp://10.96.12.7:8080' }).GATEWAY_PORT).toBe(8080);
});
