import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { commandsIn, describeWithTools, type Outcome, runCommands } from '../../../test/tools/commands.ts';
import { ROOT } from '../../../test/tools/processes.ts';
import { aServedService } from '../../../test/tools/served-service.ts';
import type { Lead } from '../../api-types.ts';
import { unknownKey } from '../support/key-secret.ts';
import { COMPONENTS } from '../support/openapi.ts';
import { CLIENTS } from './clients.ts';

const service = aServedService();
const scarce = aServedService({ QUOTA_LIMIT: '1', QUOTA_WINDOW_SECONDS: '3600' });

const page = readFileSync(join(ROOT, 'docs/how-to/generate-a-client.md'), 'utf8');

/** What a program that uses a client prints. */
interface Printed {
  readonly created: { readonly id: string };
  /** What `Idempotent-Replayed` said of the first creation, and of its repetition. */
  readonly isReplay: readonly (string | null)[];
  readonly replayed: object;
  readonly byPhone: { readonly id: string };
  readonly read: object;
  /** The ids of each page, one to a page. */
  readonly pages: readonly (readonly string[])[];
  readonly refusals: Readonly<Record<string, Refusal | null>>;
}

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly requestId: string;
  readonly fields: Readonly<Record<string, readonly string[]>> | null;
  readonly retryAfter: string | null;
}

/** What each program is refused, in whatever language. */
const REFUSALS = {
  'invalid contact': refused(400, 'integration_invalid_request', {
    fields: { 'contact.value': ['must contain at least 3 digits'] },
  }),
  'invalid cursor': refused(400, 'integration_invalid_request', { fields: { cursor: [expect.any(String)] } }),
  'invalid source': refused(400, 'integration_source_invalid'),
  'invalid key': refused(401, 'integration_key_invalid'),
  suspended: refused(402, 'subscription_suspended'),
  'other scope': refused(403, 'integration_scope_forbidden'),
  issuer: refused(403, 'integration_issuer_forbidden'),
  'unknown lead': refused(404, 'integration_lead_not_found'),
  'other data': refused(409, 'integration_idempotency_conflict'),
  'already open': refused(409, 'integration_lead_already_open'),
  'used up': refused(429, 'integration_rate_limited', { retryAfter: expect.stringMatching(/^[1-9]\d*$/) }),
};

function refused(status: number, code: string, more: Partial<Refusal> = {}): Refusal {
  return { status, code, fields: null, requestId: expect.stringMatching(/./), retryAfter: null, ...more };
}

/** Keys that are refused, each for another reason. */
async function refusedKeys() {
  const [suspended, reading, former] = await Promise.all([
    service.aStudioWithKey(),
    service.aStudioWithKey({ scopes: ['leads.read'] }),
    service.aStudioWithKey(),
  ]);
  await service.suspendStudio(suspended.studioId);
  await service.demoteOwner(former);
  return {
    INVALID_KEY: unknownKey(),
    SUSPENDED_KEY: suspended.secret,
    READING_KEY: reading.secret,
    FORMER_OWNER_KEY: former.secret,
  };
}

/** A lead as the programs print it: times are milliseconds since 1970. */
function printed(lead: Lead) {
  return { ...lead, createdAt: Date.parse(lead.createdAt), updatedAt: Date.parse(lead.updatedAt) };
}

/** A name in lower case without separators, which differ between languages. */
const normalized = (name: string) => name.replaceAll('_', '').toLowerCase();

for (const [name, { tools, build, typesOf, use }] of Object.entries(CLIENTS)) {
  // @proves leads-30 others-4 others-5 others-6
  describeWithTools(tools, `a client that is made by ${name}`, () => {
    let folder: string;
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
      cpSync(join(import.meta.dirname, name), folder, { recursive: true });
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    let making: Promise<Outcome> | undefined;
    const make = () => {
      const generate = commandsIn(page, name).replaceAll('http://127.0.0.1:8080', service.url);
      making ??= runCommands(`cd ${folder}\n${generate}\n${build}`);
      return making;
    };

    test(`has only types that the document names: ${name}`, async () => {
      expect(await make()).toMatchObject({ status: 0 });
      const types = typesOf(folder).map(normalized);
      expect(types).toContain('problemdetails');
      const names = COMPONENTS.map(normalized);
      expect(types.filter((type) => !names.includes(type))).toEqual([]);
    });

    test(`creates, repeats, reads and lists leads, and gets the reason of each refusal: ${name}`, async () => {
      expect(await make()).toMatchObject({ status: 0 });
      const { secret, studioId, sourceId } = await service.aStudioWithKey();
      const { secret: scarceKey } = await scarce.aStudioWithKey();

      const { status, stdout, stderr } = await runCommands(`cd ${folder}\n${use}`, {
        ...{ URL: service.url, KEY: secret, SOURCE_ID: sourceId, SCARCE_URL: scarce.url, SCARCE_KEY: scarceKey },
        ...(await refusedKeys()),
      });

      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      const did = JSON.parse(stdout) as Printed;
      const leadIn = async ({ id }: { readonly id: string }) =>
        ((await (await service.get(secret, `/${id}`)).json()) as { readonly lead: Lead }).lead;
      const [byEmail, byPhone] = [await leadIn(did.created), await leadIn(did.byPhone)];
      expect(byEmail).toMatchObject({ displayName: 'Zoë 🦉', note: 'a\nb', sourceId: null });
      expect(byPhone).toMatchObject({ displayName: 'Zoë 🦉', note: null, sourceId });
      expect(did).toEqual({
        ...{ created: printed(byEmail), replayed: printed(byEmail), read: printed(byEmail), byPhone: printed(byPhone) },
        isReplay: [null, 'true'],
        pages: [[byPhone.id], [byEmail.id]],
        refusals: REFUSALS,
      });
      expect(await service.countLeads(studioId)).toBe(2);
    });
  });
}
