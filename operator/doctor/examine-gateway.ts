import { DOCTOR_MS } from '../../common/deadlines.ts';
import { errorSummary } from '../../common/error-summary.ts';
import type { Notes } from './finding.ts';

/** The precision of the Date header; milliseconds. */
const DATE_PRECISION_MS = 1000;

/** Checks whether the gateway is ready at its public address. */
export async function examineGateway(notes: Notes, publicUrl: string): Promise<void> {
  try {
    const requestedAt = Date.now();
    const alive = await fetch(`${publicUrl}/healthz`, { signal: AbortSignal.timeout(DOCTOR_MS) });
    const date = alive.headers.get('date');
    if (date !== null) notes.clock('the gateway', new Date(date), requestedAt, DATE_PRECISION_MS);
    if (alive.status >= 500) {
      return notes.fault(
        `at ${publicUrl}/healthz does not answer: what is in front of it says ${alive.status}. Check that a gateway runs and is ready, and that the balancer or proxy reaches it`,
      );
    }
    if (alive.status !== 200) {
      return notes.fault(
        `at ${publicUrl}/healthz answers ${alive.status}: check that PUBLIC_URL is the address of the gateway`,
      );
    }
    const ready = await fetch(`${publicUrl}/readyz`, { signal: AbortSignal.timeout(DOCTOR_MS) });
    if (ready.status === 200) notes.ok(`at ${publicUrl} is ready`);
    else
      notes.fault(
        `at ${publicUrl} runs, but is not ready: see its log; the core or the quota store does not answer it`,
      );
  } catch (error) {
    notes.fault(`at ${publicUrl} does not answer: ${errorSummary(error)}. Check PUBLIC_URL, and that it is running`);
  }
}
