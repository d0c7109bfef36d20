import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { asWritten } from '../../sdk/as-written.ts';
import { faultsOf } from '../../sdk/index.ts';
import { describeWithTools } from '../support/examples.ts';
import { POSTED_CAPTURES } from '../support/posted-captures.ts';
import { ROOT } from '../support/processes.ts';
import { PYTHON_TOOL, pythonForTests } from '../support/python.ts';
import { aService } from '../support/service.ts';

type Faults = Readonly<Record<string, readonly string[]>>;
/** By the name of the case. */
type AllFaults = Readonly<Record<string, Faults>>;

const service = aService();

let ofService: AllFaults;
beforeAll(async () => {
  const { secret } = await service.aStudioWithKey();
  const faults: Record<string, Faults> = {};
  for (const [name, capture] of POSTED_CAPTURES) {
    const response = await service.post(secret, asWritten(capture));
    const { code, fields = {} } = (await response.json()) as { code?: string; fields?: Faults };
    // Several cases have one contact, which has an open lead after the first.
    if (code !== undefined && code !== 'integration_lead_already_open') expect(fields, name).not.toEqual({});
    faults[name] = fields;
  }
  ofService = faults;
});

/** Runs a program that prints the faults of each capture on stdin, by name. */
function faultsBy(command: string, args: readonly string[], captures = POSTED_CAPTURES): AllFaults {
  const input = JSON.stringify(captures);
  const { stdout, stderr } = spawnSync(command, args, { cwd: ROOT, input, encoding: 'utf8' });
  expect(stderr).toBe('');
  const printed = JSON.parse(stdout) as Record<string, Faults>;
  // PHP has one type for lists and objects.
  return Object.fromEntries(Object.entries(printed).map(([name, faults]) => [name, { ...faults }]));
}

test('what forms post is accepted and refused by the service, for each field', () => {
  const faulty = Object.values(ofService).flatMap((faults) => Object.keys(faults));
  expect(new Set(faulty)).toEqual(new Set(['displayName', 'contact.value', 'sourceId', 'note']));
  const accepted = Object.values(ofService).filter((faults) => Object.keys(faults).length === 0);
  expect(accepted.length).toBeGreaterThan(20);
});

describe('in TypeScript', () => {
  // @proves leads-20
  test('TypeScript: a lead has the faults that the service finds in it, and no others', () => {
    const found = POSTED_CAPTURES.map(([name, capture]) => [name, faultsOf(capture)]);
    expect(Object.fromEntries(found)).toEqual(ofService);
  });
});

describeWithTools(['php --version'], 'in PHP', () => {
  const program = (captures: string) => `
    spl_autoload_register(fn ($class) => require 'sdk/php/src/' . strtr(substr($class, 11), '\\\\', '/') . '.php');
    use LeadIntake\\{Contact, LeadCapture};
    foreach (${captures} as [$name, $data]) {
      $contact = [Contact::class, $data['contact']['type']]($data['contact']['value']);
      $capture = new LeadCapture($data['displayName'], $contact, $data['sourceId'] ?? null, $data['note'] ?? null);
      $faults[$name] = $capture->faults();
    }
    echo json_encode($faults, JSON_THROW_ON_ERROR);`;

  // @proves leads-20
  test('PHP: a lead has the faults that the service finds in it, and no others', () => {
    // PHP has no such text.
    const captures = POSTED_CAPTURES.filter(([, capture]) => JSON.stringify(capture).isWellFormed());
    const sent = captures.filter(([name]) => !name.startsWith('with half of a surrogate pair'));
    const read = `json_decode(stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR)`;
    const expected = Object.fromEntries(sent.map(([name]) => [name, ofService[name]]));
    expect(faultsBy('php', ['-r', program(read)], sent)).toEqual(expected);
  });

  test('text that is not UTF-8 is a fault', () => {
    const contact = `['type' => 'email', 'value' => "\\xff@example.org"]`;
    const captures = `[['bytes', ['displayName' => "\\xff", 'contact' => ${contact}, 'note' => "\\xff"]]]`;
    const { bytes = {} } = faultsBy('php', ['-r', program(captures)]);
    expect(Object.keys(bytes).toSorted()).toEqual(['contact.value', 'displayName', 'note']);
  });
});

describeWithTools([PYTHON_TOOL], 'in Python', () => {
  // @proves leads-20
  test('Python: a lead has the faults that the service finds in it, and no others', async () => {
    const program = `
import json, sys
from lead_intake import EmailContact, LeadCapture, PhoneContact
kinds = {"email": EmailContact, "phone": PhoneContact}
def faults(data):
    contact = kinds[data["contact"]["type"]](data["contact"]["value"])
    return LeadCapture(data["displayName"], contact, data.get("sourceId"), data.get("note")).faults()
print(json.dumps({name: faults(data) for name, data in json.load(sys.stdin)}))`;
    const python = join(await pythonForTests(), 'python');
    expect(faultsBy(python, ['-c', program])).toEqual(ofService);
  });
});
