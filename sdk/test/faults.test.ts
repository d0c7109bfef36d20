import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { describeWithTools } from '../../test/tools/commands.ts';
import { ROOT } from '../../test/tools/processes.ts';
import { aServedService } from '../../test/tools/served-service.ts';
import { asWritten } from '../as-written.ts';
import { CAPTURE_RULES, OPTIONAL_TEXTS } from '../capture-rules.ts';
import { faultCodesOf, faultsOf, type LeadCapture } from '../index.ts';
import { POSTED_CAPTURES } from './support/posted-captures.ts';
import { PYTHON_TOOL, pythonForTests } from './support/python.ts';

type Faults = Readonly<Record<string, readonly string[]>>;
/** The faults of each case, by its name. */
type AllFaults = Readonly<Record<string, Faults>>;

const service = aServedService();

/** Seven invisible names, and then visible ones. The service stores all of them. */
const NAMES = [
  ' ',
  '\t\n',
  '\u00a0\u3000',
  '\u200b\u200d\ufeff',
  '\u3164',
  '\u0007',
  '\u{e0020}',
  '.',
  ' \u200dA',
  '😀',
  '\u3042',
];
const isVisible = (name: string) => NAMES.indexOf(name) > 6;
const named = (name: string): LeadCapture => ({
  displayName: name,
  contact: { type: 'email', value: `${NAMES.indexOf(name)}@example.org` },
});
const NAMED_CAPTURES = NAMES.map((name) => [JSON.stringify(name), named(name)] as const);

/** Returns the fault codes that the TypeScript client finds in each capture. Its own test checks them. */
const listCodes = (captures: readonly (readonly [string, LeadCapture])[]) =>
  Object.fromEntries(captures.map(([name, capture]) => [name, faultCodesOf(capture)]));

let ofService: AllFaults;
beforeAll(async () => {
  const { secret } = await service.aStudioWithKey();
  const faults: Record<string, Faults> = {};
  for (const [name, capture] of POSTED_CAPTURES) {
    const response = await service.post(secret, asWritten(capture));
    const { code, fields = {} } = (await response.json()) as { code?: string; fields?: Faults };
    // Several cases share a contact, which has an open lead after the first of them.
    if (code !== undefined && code !== 'integration_lead_already_open') expect(fields, name).not.toEqual({});
    faults[name] = fields;
  }
  ofService = faults;
});

/** Runs a program that reads captures from stdin, and prints their faults by name. */
function faultsBy(command: string, args: readonly string[], captures = POSTED_CAPTURES): AllFaults {
  const input = JSON.stringify(captures);
  const { stdout, stderr } = spawnSync(command, args, { cwd: ROOT, input, encoding: 'utf8' });
  expect(stderr).toBe('');
  const printed = JSON.parse(stdout) as Record<string, Faults>;
  // PHP has one type for lists and objects.
  return Object.fromEntries(Object.entries(printed).map(([name, faults]) => [name, { ...faults }]));
}

test('the service accepts many posted captures, and finds faults in every field of others', () => {
  const faulty = Object.values(ofService).flatMap((faults) => Object.keys(faults));
  expect(new Set(faulty)).toEqual(new Set(['displayName', 'contact.value', ...OPTIONAL_TEXTS]));
  const accepted = Object.values(ofService).filter((faults) => Object.keys(faults).length === 0);
  expect(accepted.length).toBeGreaterThan(20);
});

test('the service stores a name without a visible character', async () => {
  const { secret } = await service.aStudioWithKey();
  for (const [, capture] of NAMED_CAPTURES) {
    const { lead } = (await (await service.post(secret, capture)).json()) as { lead?: LeadCapture };
    expect(lead?.displayName).toBe(capture.displayName);
  }
});

describe('in TypeScript', () => {
  test('the TypeScript client refuses an invisible name, and gives each fault a code', () => {
    for (const [, capture] of NAMED_CAPTURES) {
      const isFine = isVisible(capture.displayName);
      expect(faultsOf(capture)).toEqual(isFine ? {} : { displayName: ['must have a visible character'] });
      expect(faultCodesOf(capture)).toEqual(isFine ? {} : { displayName: ['not_visible'] });
    }
    const listKeys = (all: Readonly<Record<string, object>>) =>
      Object.entries(all).map(([name, of]) => [name, Object.keys(of)]);
    const codes = listCodes(POSTED_CAPTURES);
    expect(listKeys(codes)).toEqual(listKeys(ofService));
    const all = Object.values(codes).flatMap((faults) => Object.values(faults).flat());
    const ofTexts = Object.values(CAPTURE_RULES).flatMap((rules) => rules.map(([, , code]) => code));
    expect(new Set(['not_visible', ...all])).toEqual(new Set(ofTexts));
    const strange = { displayName: 7, contact: { type: 'fax', value: '' }, colour: 'green' } as never;
    expect(faultCodesOf(strange)).toEqual({
      displayName: ['not_text'],
      'contact.type': ['no_contact_type'],
      colour: ['unknown_property'],
    });
  });

  // @proves leads-20
  test('the TypeScript client finds exactly the faults that the service finds', () => {
    const found = POSTED_CAPTURES.map(([name, capture]) => [name, faultsOf(capture)]);
    expect(Object.fromEntries(found)).toEqual(ofService);
  });
});

describeWithTools(['php --version'], 'in PHP', () => {
  const program = (captures: string, method = 'faults') => `
    spl_autoload_register(fn ($class) => require 'sdk/php/src/' . strtr(substr($class, 11), '\\\\', '/') . '.php');
    use LeadIntake\\{Contact, LeadCapture};
    foreach (${captures} as [$name, $data]) {
      $contact = [Contact::class, $data['contact']['type']]($data['contact']['value']);
      $capture = new LeadCapture(...['contact' => $contact] + $data);
      $faults[$name] = $capture->${method}();
    }
    echo json_encode($faults, JSON_THROW_ON_ERROR);`;

  // @proves leads-20
  test('the PHP client finds exactly the faults that the service finds, with their codes', () => {
    // PHP has no text with half of a surrogate pair.
    const captures = POSTED_CAPTURES.filter(([, capture]) => JSON.stringify(capture).isWellFormed());
    const sent = captures.filter(([name]) => !name.startsWith('with half of a surrogate pair'));
    const read = `json_decode(stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR)`;
    const expected = Object.fromEntries(sent.map(([name]) => [name, ofService[name]]));
    expect(faultsBy('php', ['-r', program(read)], sent)).toEqual(expected);
    const both = [...sent, ...NAMED_CAPTURES];
    expect(faultsBy('php', ['-r', program(read, 'faultCodes')], both)).toEqual(listCodes(both));
  });

  test('the PHP client finds a fault in text that is not UTF-8', () => {
    const contact = `['type' => 'email', 'value' => "\\xff@example.org"]`;
    const captures = `[['bytes', ['displayName' => "\\xff", 'contact' => ${contact}, 'note' => "\\xff"]]]`;
    const { bytes = {} } = faultsBy('php', ['-r', program(captures)]);
    expect(Object.keys(bytes).toSorted()).toEqual(['contact.value', 'displayName', 'note']);
  });
});

describeWithTools([PYTHON_TOOL], 'in Python', () => {
  // @proves leads-20
  test('the Python client finds exactly the faults that the service finds, with their codes', async () => {
    const program = (method: string) => `
import json, re, sys
from lead_intake import EmailContact, LeadCapture, PhoneContact
kinds = {"email": EmailContact, "phone": PhoneContact}
def faults(data):
    contact = kinds[data["contact"]["type"]](data["contact"]["value"])
    texts = {re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name): text for name, text in data.items()}
    return LeadCapture(**{**texts, "contact": contact}).${method}()
print(json.dumps({name: faults(data) for name, data in json.load(sys.stdin)}))`;
    const python = join(await pythonForTests(), 'python');
    expect(faultsBy(python, ['-c', program('faults')])).toEqual(ofService);
    const both = [...POSTED_CAPTURES, ...NAMED_CAPTURES];
    expect(faultsBy(python, ['-c', program('fault_codes')], both)).toEqual(listCodes(both));
  });
});
