import { beforeEach, describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import { aCreateLeadRequest } from '../support/grpc.ts';
import { putStudio } from '../support/grpc-studios.ts';
import { aSharedCore } from './shared-core.ts';

interface Page {
  readonly leads: readonly { readonly id: string; readonly stage: string; readonly contact: object }[];
  readonly nextPageToken: string;
  readonly mayBeIncomplete: boolean;
}

const { caller } = aSharedCore();
let studioId: string;

beforeEach(async () => {
  studioId = await putStudio(caller);
});

const leads = <Answer>(method: string, request: object) => caller.call<Answer>(`LeadIntakeService/${method}`, request);
const find = (contact: object | undefined, more: object = {}) =>
  leads<Page>('FindLeads', { studioId, ...(contact && { contact }), ...more });
const anEmail = () => ({ email: `${newId()}@example.org` });
const putRegion = (regionCode: string) =>
  caller.call('DirectoryService/PutStudio', { studio: { id: studioId, regionCode } });

/** Creates a lead, and optionally moves it; returns its id. */
async function aLead(contact: object, stage?: string): Promise<string> {
  const { lead } = await leads<{ lead: { id: string } }>('CreateLead', aCreateLeadRequest(studioId, { contact }));
  if (stage) await move(lead.id, stage);
  return lead.id;
}

const move = (leadId: string, stage: string) =>
  leads('ChangeLeadStage', { studioId, leadId, stage: `LEAD_STAGE_${stage}` });

// @proves leads-9
describe('FindLeads', () => {
  test('reports that leads of a number may be missing where some may have been opened without a region', async () => {
    const contact = { phone: '+49 30 1234567' };
    expect(await find(contact)).toMatchObject({ mayBeIncomplete: true });
    await putRegion('DE');
    expect(await find(contact)).toMatchObject({ mayBeIncomplete: true });
    expect(await find(anEmail())).toMatchObject({ mayBeIncomplete: false });

    const studio = { id: newId(), status: 'STUDIO_STATUS_ACTIVE', regionCode: 'DE' };
    await caller.call('DirectoryService/PutStudio', { studio });
    await caller.call('DirectoryService/PutStudio', { studio: { ...studio, regionCode: 'AT' } });
    expect(await find(contact, { studioId: studio.id })).toMatchObject({ mayBeIncomplete: false });
  });

  test.each([2, 5])('returns all leads in pages of %i', async (pageSize) => {
    const contact = anEmail();
    const closed: string[] = [];
    for (const _ of times(4, () => 0)) closed.unshift(await aLead(contact, 'LOST'));
    const open = await aLead(contact);

    const pages: string[][] = [];
    for (let pageToken: string | undefined = ''; pageToken !== undefined; ) {
      const page: Page = await find(contact, { pageSize, pageToken });
      pages.push(page.leads.map(({ id }) => id));
      pageToken = page.nextPageToken || undefined;
    }

    expect(pages.flat()).toEqual([open, ...closed]);
    expect(pages.every((page) => page.length <= pageSize)).toBe(true);
    expect(pages).toHaveLength(Math.ceil(5 / pageSize));
  });
});
