import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type LeadChange, LeadChangeKind } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Chance } from '../tools/chance.ts';
import type { CoreClients } from './core-clients.ts';

/** The newest state of each lead that the consumers have stored, by the lead's id. */
export type Copy = Map<string, LeadChange>;

const findContent = ({ lead, kinds }: LeadChange) => ({ lead, kinds });

/** The longest retry delay of changes that a consumer sets aside; milliseconds. */
const MAX_ASIDE_MS = 2000;

/**
 * Maintains a copy of all leads as the contract prescribes. Now and then the consumer dies, loses the changes that it has
 * not stored, and restarts. A named consumer sets some changes aside.
 */
export async function consumeFeed(
  { leads, consumers }: CoreClients,
  copy: Copy,
  chance: Chance,
  {
    signal,
    watches,
    consumer = '',
    fail,
    taken = new Map(),
  }: {
    readonly signal: AbortSignal;
    readonly watches: boolean;
    readonly consumer?: string;
    /** Called with a broken promise. */
    readonly fail: (broken: string) => void;
    /** Collects all changes that it acknowledges, even if the call fails, by the ids of their leads. */
    readonly taken?: Map<string, LeadChange[]>;
  },
): Promise<void> {
  /** The revisions whose acknowledgement has succeeded. */
  const acknowledged = new Map<string, bigint>();
  /** Whether an acknowledged change came again without a resend. A watch may repeat one that it sent before. */
  const isRepeated = ({ lead, revision, kinds }: LeadChange) =>
    !watches &&
    (acknowledged.get(lead?.id ?? '') ?? -1n) >= revision &&
    !kinds.some(({ kind }) => kind === LeadChangeKind.RESENT);
  const take = async (changes: readonly LeadChange[]) => {
    if (chance.number() < 0.1) throw new Error('it died before it applied anything');
    // Some waits are so long that leads change again before their acknowledgement.
    await sleep(chance.between(0, chance.number() < 0.3 ? 400 : 20));
    const failing = new Set(consumer === '' ? [] : changes.filter(() => chance.number() < 0.1));
    for (const change of changes) {
      const id = change.lead?.id ?? '';
      const last = copy.get(id);
      const isOther = last?.revision === change.revision && !isDeepStrictEqual(findContent(last), findContent(change));
      if (isOther) fail(`consumer "${consumer}" got two contents of ${id} at revision ${change.revision}`);
      if (isRepeated(change)) fail(`consumer "${consumer}" got ${id} at ${change.revision} after it acknowledged that`);
      if (!failing.has(change) && (copy.get(id)?.revision ?? -1n) < change.revision) copy.set(id, change);
    }
    if (chance.number() < 0.1) throw new Error('it died before it acknowledged anything');
    const findState = ({ lead, revision }: LeadChange) => ({
      studioId: lead?.studioId ?? '',
      leadId: lead?.id ?? '',
      revision,
    });
    const processed = changes.filter((change) => !failing.has(change));
    for (const change of processed)
      taken.set(change.lead?.id ?? '', [...(taken.get(change.lead?.id ?? '') ?? []), change]);
    const acknowledgements = processed.map(findState);
    await leads.acknowledgeLeadChanges({ acknowledgements, consumer }, { timeoutMs: 3000 });
    for (const { leadId, revision } of acknowledgements) acknowledged.set(leadId, revision);
    if (failing.size === 0) return;
    const retryTime = chance.number() < 0.5 ? timestampFromMs(Date.now() + chance.between(0, MAX_ASIDE_MS)) : undefined;
    const aside = [...failing].map((change) => ({ ...findState(change), reason: 'FAILED', retryTime }));
    await consumers.setAsideLeadChanges({ consumer, leads: aside }, { timeoutMs: 3000 });
  };
  while (!signal.aborted) {
    try {
      if (watches) {
        for await (const { changes } of leads.watchLeadChanges({ consumer }, { signal })) await take(changes);
      } else {
        const { changes } = await leads.pullLeadChanges(
          { max: 7, wait: { seconds: 1n, nanos: 0 }, consumer },
          { timeoutMs: 3000, signal },
        );
        await take(changes);
      }
    } catch {
      await sleep(20);
    }
  }
}
