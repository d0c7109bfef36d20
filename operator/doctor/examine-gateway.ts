import { DOCTOR_MS } from '../../common/deadlines.ts';
import { errorSummary } from '../../common/error-summary.ts';
import { type Finding, Notes } from './finding.ts';

/** A date in a header has whole seconds; milliseconds. */
const DATE_PRECISION_MS = 1000;

/** Asks the gateway where its callers reach it. */
export async function examineGateway(publicUrl: string): Promise<readonly Finding[]> {
  const notes = new Notes('gateway');
  try {
    const askedAt = Date.now();
    const alive = await fetch(`${publicUrl}/healthz`, { signal: AbortSignal.timeout(DOCTOR_MS) });
    const date = alive.headers.get('date');
    if (date !== null) notes.clock('the gateway', new Date(date), askedAt, DATE_PRECISION_MS);
    if (alive.status !== 200) {
      notes.fault(`at ${publicUrl}/healthz answers ${alive.status}: is PUBLIC_URL where the gateway is?`);
      return notes.findings;
    }
    const ready = await fetch(`${publicUrl}/readyz`, { signal: AbortSignal.timeout(DOCTOR_MS) });
    if (ready.status === 200) notes.well(`at ${publicUrl} is ready`);
    else notes.fault(`at ${publicUrl} lives, but is not ready: the core or the quota store does not answer it`);
  } catch (error) {
    notes.fault(`at ${publicUrl} does not answer: ${errorSummary(error)}. Look at PUBLIC_URL, and whether it runs`);
  }
  return notes.findings;
}
