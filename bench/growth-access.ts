import type { CreatedLead, KnownLeads, Page } from './growth-leads.ts';

/** Tells, once the clock has stopped, whether the answer is the right one. @throws Error when it is not */
type Check = () => void;

/** A call that is ready to be made, which is not timed. */
export type Call = () => Promise<Check>;

/** A loaded database, and a way to call it. */
export interface Access {
  readonly leads: KnownLeads;
  /** Creates leads of the busy studio, all at once. */
  create(count: number): Call;
  /** Creates a lead of the busy studio again. */
  replay(created: CreatedLead): Call;
  /** Reads a lead of the busy studio. */
  read(leadId: string): Call;
  list(page: Page): Call;
  /** The processor time that the called processes have had so far; microseconds. NaN where there are none. */
  cpuTimeUs(): number;
  close(): Promise<void>;
}

/** Refuses an answer that is not the one to be measured. */
export function expect(isRight: boolean, answer: unknown): void {
  if (!isRight) throw new Error(`not the answer that was to be measured: ${JSON.stringify(answer)}`);
}
