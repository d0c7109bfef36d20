import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type Environment, SettingsError, type SettingsTable, type UnusedVariables } from '../../common/settings.ts';
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
  readonly read: (env: Environment) => UnusedVariables;
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

/** What a process does with an environment: its faults, or what it logs as unused. */
function said({ read }: Process, env: Environment): string {
  try {
    const { ignored, unknown } = read(env);
    return [...ignored, ...unknown].join();
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

/** A name with one letter fewer, at each place. */
const withoutALetter = (name: string) => [...name].map((_, index) => name.slice(0, index) + name.slice(index + 1));

/** A name with a letter fewer, one more, another one, or two swapped, at each place. */
const misspelt = (name: string) => [
  ...withoutALetter(name),
  ...withoutALetter(name).flatMap((shorter) => withoutALetter(shorter).slice(0, 3)),
  ...[...name].flatMap((letter, index) => [
    `${name.slice(0, index)}X${name.slice(index)}`,
    `${name.slice(0, index)}X${name.slice(index + 1)}`,
    `${name.slice(0, index)}${name[index + 1] ?? ''}${letter}${name.slice(index + 2)}`,
  ]),
  name.toLowerCase(),
];

const NAMES = new Set(SETTINGS.flatMap(variablesOf));

// @proves crashes-13
describe('a setting is refused or named in the log', () => {
  test.each(SETTINGS)('when it is blank: $what, $name', (setting) => {
    for (const name of variablesOf(setting)) {
      for (const blank of ['', ' ', '\t\n']) expect(isSaid(setting.process, name, blank), name).toBe(true);
    }
    if (setting.setting.protects) expect(() => setting.read({ [setting.name]: '' })).toThrow(SettingsError);
  });

  test.each(SETTINGS)('when its name is misspelt: $what, $name', (setting) => {
    const names = variablesOf(setting)
      .flatMap(misspelt)
      .filter((name) => !NAMES.has(name));
    expect(names.length).toBeGreaterThan(30);
    // The value is a valid one, so that only the name can be the reason.
    expect(names.filter((name) => !isSaid(setting.process, name, '1'))).toEqual([]);
  });

  test.each(SETTINGS)('when its name has _FILE and should not, or lacks it: $what, $name', ({ process, name }) => {
    const other = name.endsWith('_FILE') ? name.slice(0, -'_FILE'.length) : `${name}_FILE`;
    // An empty file is a fault of a setting that may be in a file.
    writeFileSync(join(folder, 'empty'), '');
    const reported = said(process, { [other]: join(folder, 'empty') });
    expect(reported).toContain(name.replace(/_FILE$/, ''));
    expect(NAMES.has(other) || reported.includes(`${other} is not a setting`)).toBe(true);
  });

  test.each(SETTINGS)('when a word is added, replaced or moved: $what, $name', (setting) => {
    const names = variablesOf(setting).flatMap((name) => {
      const words = name.split('_');
      const [first = '', ...others] = words;
      const changed = [
        ['OTHER', ...words],
        [...words, 'OTHER'],
        [...others, first],
      ];
      // Of names that other programs have, too, no other word makes a setting.
      if (!/^(?:DATABASE|LOG|OTEL|PUBLIC)_/.test(name)) {
        for (const index of others.keys()) {
          changed.push(words.toSpliced(index + 1, 0, 'OTHER'), words.toSpliced(index + 1, 1, 'OTHER'));
        }
        if (others.length > 1) changed.push(others);
      }
      return changed.map((each) => each.join('_')).filter((each) => !NAMES.has(each));
    });
    expect(names.filter((name) => !isSaid(setting.process, name, '1'))).toEqual([]);
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
    expect(process.read(injected)).toMatchObject({
      ignored: Object.keys(process.table).filter((known) => known === `${service}_PORT`),
      unknown: [],
    });
  });
});

test.each(PROCESSES)('the $what accepts the settings of the other, and what providers set', ({ read, table }) => {
  const others = PROCESSES.flatMap((other) => variablesOfTable(other.table)).filter(
    (name) => !variablesOfTable(table).includes(name),
  );
  const provided = ['REDIS_TLS_URL', 'REDIS_HOST', 'REDIS_PORT', 'PORT', 'HOST', 'DATABASE_NAME', 'PUBLIC_KEY'];
  const env = Object.fromEntries([...others, ...provided].map((name) => [name, 'x']));
  expect(read(env)).toMatchObject({ ignored: [], unknown: [] });
});

test('a setting that another one replaced is refused, and named', () => {
  for (const { read, table } of PROCESSES) {
    if (!('REUSE_PORT' in table)) continue;
    for (const former of ['CORE_PROCESSES', 'GATEWAY_PROCESSES']) {
      const fault = new RegExp(`${former} is no longer a setting: remove it, and start each.*REUSE_PORT=yes`);
      for (const value of ['4', '']) expect(() => read({ [former]: value })).toThrow(fault);
    }
  }
});

const variablesOfTable = (table: SettingsTable) =>
  Object.entries(table).flatMap(([name, { fromFile }]) => (fromFile ? [name, `${name}_FILE`] : [name]));

test.each([
  ['core', 'CORE_CLIENT_CA_FILE', 'CORE_TLS_CLIENT_CA_FILE'],
  ['core', 'CORE_TOKENFILE', 'CORE_TOKEN_FILE'],
  ['gateway', 'QUOTA_LIMT', 'QUOTA_LIMIT'],
  ['gateway', 'REDIS_URI', 'REDIS_URL'],
])('the %s refuses %s, and names %s', (what, name, meant) => {
  const process = PROCESSES.find((each) => each.what === what) as Process;
  expect(said(process, { [name]: '5' })).toBe(`${name} is not a setting: rename it to ${meant}, or remove it`);
});

test('the address of a Service in place of a port leaves the default', () => {
  expect(readCoreConfig({ CORE_PORT: 'tcp://10.96.12.7:50051' }).CORE_PORT).toBe(50_051);
  expect(readGatewayConfig({ GATEWAY_PORT: 'tcp://10.96.12.7:8080' }).GATEWAY_PORT).toBe(8080);
});
