import { setImmediate as turnOver } from 'node:timers/promises';
import { pageTokenFault } from '../../common/rules/field-rules.ts';
import type { Lead } from '../domain/lead.ts';
import { Faults } from '../domain/refusal.ts';
import { type ExportPosition, exportPosition, resumeTokenAfter } from '../domain/resume-token.ts';
import type { DirectoryStore, LeadStore } from '../store/store.ts';
import { existingStudio } from './keep-directory.ts';
import { everyStudio } from './list-studios.ts';

/** How many leads are read at a time: an export holds no more of them, however many there are. */
const MAX_LEADS_PER_PAGE = 100;

/** Which leads to export, not yet checked. */
export interface ExportLeadsQuery {
  /** Empty: those of all studios. */
  readonly studioId: string;
  /** Empty: from the beginning. */
  readonly resumeToken: string;
}

/** Some of the leads, and where to go on behind them. */
export interface ExportedLeads {
  readonly leads: readonly Lead[];
  readonly resumeToken: string;
}

/**
 * Gives all leads of a studio, or of all studios, ordered by studio and then by id: page by page, the next not before it is
 * asked for. Every lead that is there when it begins, and stays, is given once; so it is when an export is broken off and goes on
 * behind what was given.
 *
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function* exportLeads(
  { store }: { readonly store: DirectoryStore & Pick<LeadStore, 'walkLeads'> },
  { studioId, resumeToken }: ExportLeadsQuery,
): AsyncGenerator<ExportedLeads> {
  const begin = resumeToken === '' ? null : exportPosition(studioId, resumeToken);
  const faults = new Faults();
  if (begin === undefined) {
    faults.note('resumeToken', pageTokenFault(resumeToken) ?? 'must be unchanged, of an export of the same studio');
  }
  if (studioId !== '') await existingStudio(store, studioId, faults);
  faults.refuseIfAny();

  for await (const id of studioIds(begin ?? null)) {
    for (let after = begin?.studioId === id ? begin.leadId : null; ; ) {
      const { records: leads, next } = await store.walkLeads(id, after, MAX_LEADS_PER_PAGE);
      const position = next ?? leads.at(-1)?.id;
      if (position !== undefined) {
        yield { leads, resumeToken: resumeTokenAfter(studioId, { studioId: id, leadId: position }) };
      }
      // A store may answer within the turn in which it is asked, and then nobody else would have one.
      await turnOver();
      if (next === null) break;
      after = next;
    }
  }

  /** The studios that are not yet done. */
  async function* studioIds(begun: ExportPosition | null): AsyncGenerator<string> {
    if (studioId !== '') {
      yield studioId;
      return;
    }
    if (begun) yield begun.studioId;
    for await (const { id } of everyStudio({ store }, begun?.studioId)) yield id;
  }
}
