import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromJsonString, toJson } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { EXPORT_FORMATS } from '../../operator/export-format.ts';
import { ExportBroken, writeLeads } from '../../operator/export-leads.ts';
import { type ExportOutput, fileOutput } from '../../operator/export-output.ts';
import { LeadSchema } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Lead } from '../../src/domain/lead.ts';
import { newId, systemClock } from '../../src/domain/new-id.ts';
import { leadToWire } from '../../src/rpc/convert.ts';
import { openStore } from '../../src/store/open-store.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import { aLead, aStudio, BY, claimsOf, HARD_TEXTS, times } from '../support/builders.ts';
import { temporaryFolder } from '../support/processes.ts';

type FormatName = keyof typeof EXPORT_FORMATS;

let folder: string;
let store: Store;

beforeEach(async () => {
  folder = temporaryFolder();
  store = await openStore(`sqlite:${join(folder, 'leads.db')}`);
  onTestFinished(() => store.close());
});

/** Creates a studio and its leads, in the order of their ids. */
async function studioWith(studioId: string, leads: readonly Partial<Lead>[]): Promise<Lead[]> {
  await store.putStudio(aStudio({ id: studioId }), BY);
  const all = leads.map((overrides) => aLead({ studioId, ...overrides }));
  await Promise.all(all.map((lead) => store.createLead(lead, claimsOf(lead))));
  return all;
}

/** Two studios whose leads contain every difficult text, also quoted and in several lines; the first one's id is neutralised in CSV. */
const hardLeads = async () => [
  ...(await studioWith(
    '-s',
    Object.values(HARD_TEXTS).map((text) => ({ displayName: text, note: `${text}"\n"=1` })),
  )),
  ...(await studioWith(
    's',
    times(3, () => ({ note: '"\r\n","' })),
  )),
];

interface ToFile {
  readonly name?: string;
  readonly format: FormatName;
  readonly resumes?: boolean;
  readonly studioId?: string;
  readonly from?: Store;
}

/** Exports to a file; returns its content. */
async function toFile({ name = 'out', format, resumes = false, studioId = '', from = store }: ToFile): Promise<string> {
  const path = join(folder, name);
  await writeLeads(
    { store: from, clock: systemClock, newId },
    {
      studioId,
      resumeToken: '',
      format: EXPORT_FORMATS[format],
      output: await fileOutput(path, EXPORT_FORMATS[format], resumes),
      isFile: true,
    },
  );
  return readFileSync(path, 'utf8');
}

/** An output that collects the texts written to it. */
function inMemory(): ExportOutput & { readonly texts: string[] } {
  const texts: string[] = [];
  return { texts, written: undefined, write: async (text) => void texts.push(text), close: async () => {} };
}

/** A store that fails from a given page on. */
const failingFrom = (page: number): Store => {
  let reads = 0;
  return {
    ...store,
    walkLeads: (...args) => {
      reads += 1;
      return reads >= page ? Promise.reject(new StoreUnavailable('the fault of the test')) : store.walkLeads(...args);
    },
  };
};

test('each line of NDJSON is a lead in the JSON form of the contract', async () => {
  const leads = await hardLeads();

  const lines = (await toFile({ format: 'ndjson' })).trimEnd().split('\n');

  const read = lines.map((line) => toJson(LeadSchema, fromJsonString(LeadSchema, line)));
  expect(read).toEqual(leads.map((lead) => toJson(LeadSchema, leadToWire(lead, 'full'))));
  for (const line of lines) {
    const { createTime } = JSON.parse(line);
    expect(createTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
});

// @proves leads-14
describe.each<[FormatName]>([['ndjson'], ['csv']])('a file of %s', (format) => {
  test('that ends anywhere is resumed to exactly the same file', async () => {
    await hardLeads();
    const whole = await toFile({ name: 'whole', format });
    const path = join(folder, 'out');
    const size = Buffer.byteLength(whole);
    // Each length near the beginning and the end of the file, and others.
    const lengths = new Set([...times(130, (index) => index), ...times(60, (index) => size - index)]);
    for (let at = 131; at < size; at += 61) lengths.add(at);

    for (const length of lengths) {
      writeFileSync(path, whole);
      truncateSync(path, length);
      const file = await toFile({ format, resumes: true }).catch(String);
      expect({ length, file }).toEqual({ length, file: whole });
    }
  });

  test('is created when it is missing, readable by its owner only', async () => {
    await hardLeads();
    expect(await toFile({ format, resumes: true })).toBe(await toFile({ name: 'other', format }));
    expect(statSync(join(folder, 'out')).mode & 0o777).toBe(0o600);
  });

  test.each([
    ['something without lines', 'my notes'],
    ['something in lines', 'my notes\nand more\n'],
    ['the other format', 'other'],
  ])('that has %s is left unchanged', async (_, content) => {
    await hardLeads();
    const other = await toFile({ name: 'other', format: format === 'csv' ? 'ndjson' : 'csv' });
    const text = content === 'other' ? other : content;
    writeFileSync(join(folder, 'out'), text);

    await expect(toFile({ format, resumes: true })).rejects.toThrow('is not an export in this format');

    expect(readFileSync(join(folder, 'out'), 'utf8')).toBe(text);
  });

  test('whose export fails is reported with its number of leads, and can be resumed', async () => {
    await studioWith(
      's',
      times(450, () => ({})),
    );
    const whole = await toFile({ name: 'whole', format });

    const broken = await toFile({ format, from: failingFrom(3) }).catch((error) => error);

    expect(broken).toBeInstanceOf(ExportBroken);
    expect(broken.message).toBe('200 leads were written; continue after them with --resume');
    expect(broken.cause).toBeInstanceOf(StoreUnavailable);
    expect(await toFile({ format, resumes: true })).toBe(whole);
  });
});

test('an export to standard output that fails reports the token to resume from', async () => {
  await studioWith(
    's',
    times(450, () => ({})),
  );
  const whole = await toFile({ format: 'csv' });
  const [first, rest] = [inMemory(), inMemory()];
  const to = (output: ExportOutput, resumeToken: string, from: Store) =>
    writeLeads(
      { store: from, clock: systemClock, newId },
      { studioId: 's', resumeToken, format: EXPORT_FORMATS.csv, output, isFile: false },
    );

  const broken = await to(first, '', failingFrom(4)).catch((error) => error);
  const [, resumeToken = ''] = /--resume-from (\S+)$/.exec(broken.message) ?? [];
  await to(rest, resumeToken, store);

  expect([...first.texts, ...rest.texts].join('')).toBe(whole);
});
