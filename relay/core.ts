import { type Timestamp, timestampFromDate, timestampMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { type CoreToken, connectToCore } from '../common/core-connection.ts';
import { CORE_CALL_MS } from '../common/deadlines.ts';
import type { TlsCredentials } from '../common/tls-credentials.ts';
import { ConsumerService } from '../proto/gen/leadintake/v1/consumer_pb.ts';
import { type LeadChange, LeadIntakeService } from '../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { RelayConfig } from './config.ts';

/** How often an idle feed sends a heartbeat, and how long it may be silent; milliseconds. */
const HEARTBEAT_MS = 15_000;
const SILENCE_MS = 45_000;

/** A lead change, with the restores of the database that it was read from. */
export interface FeedChange extends LeadChange {
  readonly databaseEpoch: bigint;
  readonly restoredToTime: Timestamp | undefined;
}

export type Core = ReturnType<typeof connectCore>;

/** Connects to a core's change feed for its named consumers. Methods reject with a ConnectError. */
export function connectCore(config: RelayConfig, credentials: TlsCredentials, token: CoreToken) {
  const { transport, sessions } = connectToCore(config, credentials, token);
  const leads = createClient(LeadIntakeService, transport);
  const consumers = createClient(ConsumerService, transport);
  const inTime = { timeoutMs: CORE_CALL_MS };

  return {
    /** Yields a consumer's changes, or an empty list as a heartbeat, until the core ends the call. */
    async *watch(consumer: string, signal: AbortSignal): AsyncGenerator<readonly FeedChange[]> {
      // If there are two tokens, a refused unary call is retried with the other one. A stream's refusal would come too late for that.
      await consumers.listSetAsideLeadChanges({ consumer, pageSize: 1 }, { ...inTime, signal }).catch((error) => {
        // These codes mean that a record cannot be read. The core has accepted the caller.
        if (![Code.Internal, Code.DataLoss].includes(ConnectError.from(error).code)) throw error;
      });
      const silence = new AbortController();
      const timer = setTimeout(() => silence.abort(), SILENCE_MS);
      const heartbeat = { seconds: BigInt(HEARTBEAT_MS / 1000), nanos: 0 };
      const ending = { signal: AbortSignal.any([signal, silence.signal]), timeoutMs: 0 };
      try {
        for await (const { changes, databaseEpoch, restoredToTime } of leads.watchLeadChanges(
          { consumer, heartbeat },
          ending,
        )) {
          timer.refresh();
          yield changes.map((change) => ({ ...change, databaseEpoch, restoredToTime }));
        }
      } finally {
        clearTimeout(timer);
      }
    },

    async acknowledge(consumer: string, changes: readonly LeadChange[]): Promise<void> {
      await leads.acknowledgeLeadChanges({ consumer, acknowledgements: changes.map(toLeadState) }, inTime);
    },

    /** Sets a lead's state aside until `retryAt`; without a time, until an operator takes it back or the lead changes. */
    async setAside(consumer: string, change: LeadChange, reason: string, retryAt: Date | undefined): Promise<void> {
      const retry = retryAt && { retryTime: timestampFromDate(retryAt) };
      await consumers.setAsideLeadChanges({ consumer, leads: [{ ...toLeadState(change), reason, ...retry }] }, inTime);
    },

    close: () => sessions.abort(),
  };
}

/** Returns what identifies the state of a change's lead. */
const toLeadState = ({ lead, revision }: LeadChange) => ({
  studioId: lead?.studioId ?? '',
  leadId: lead?.id ?? '',
  revision,
});

/** Returns the state of a change's lead for logs and receivers, with the revision as text. */
export const formatLeadState = (change: LeadChange) => ({ ...toLeadState(change), revision: `${change.revision}` });

/** Returns milliseconds since 1970; 0 without a time. */
export const toTimeMs = (time: Timestamp | undefined): number => (time ? timestampMs(time) : 0);

/** Returns whether retrying a call cannot succeed. */
export const isRefused = (error: unknown): boolean =>
  [Code.InvalidArgument, Code.NotFound].includes(ConnectError.from(error).code);
