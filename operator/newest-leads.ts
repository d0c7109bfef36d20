import type { Lead } from '../src/domain/lead.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { getStudio } from '../src/usecases/keep-directory.ts';
import { listLeads } from '../src/usecases/list-leads.ts';

/**
 * Returns the newest leads of a studio, newest first, up to the limit.
 *
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function newestLeads(deps: Dependencies, studioId: string, limit: number): Promise<Lead[]> {
  await getStudio(deps, studioId);
  const leads: Lead[] = [];
  let pageToken = '';
  do {
    const page = await listLeads(deps, { studioId, pageSize: limit - leads.length, pageToken, view: 'full' });
    leads.push(...page.leads);
    pageToken = page.nextPageToken;
  } while (pageToken !== '' && leads.length < limit);
  return leads;
}
