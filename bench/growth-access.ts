import type { CreatedLead, KnownLeads, Page } from './growth-leads.ts';

/** Checks the response; not timed. @throws Error when it is wrong */
type Check = () => void;

/** A prepared call, which is timed. */
export type Call = () => Promise<Check>;

/** Makes calls on a loaded database. */
export interface Access {
  readonly leads: KnownLeads;
  /** Creates leads of the busy studio concurrently. */
  create(count: number): Call;
  /** Repeats the creation of a lead of the busy studio. */
  replay(created: CreatedLead): Call;
  /** Reads a lead of the busy studio. */
  read(leadId: string): Call;
  list(page: Page): Call;
  /** The processor time of the called processes so far; microseconds. NaN if there are none. */
  cpuTimeUs(): number;
  close(): Promise<void>;
}

/** @throws Error unless the response is right */
export function expect(isRight: boolean, response: unknown): void {
  if (!isRight) throw new Error(`unexpected response: ${JSON.stringify(response)}`);
}
