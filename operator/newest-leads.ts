import type { Lead } from '../src/domain/lead.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { getStudio } from '../src/usecases/keep-directory.ts';
import { listLeads } from '../src/usecases/list-leads.ts';

/**
 * So many leads of a studio, newest first, or all that it has.
 *
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function newestLeads(deps: Dependencies, studioId: string, limit: number): Promise<Lead[]> {
  await getStudio(deps, studioId);
  const found: Lead[] = [];
  let pageToken = '';
  do {
    const page = await listLeads(deps, { studioId, pageSize: limit - found.length, pageToken, view: 'full' });
    found.push(...page.leads);
    pageToken = page.nextPageToken;
  } while (pageToken !== '' && found.length < limit);
  return found;
}
