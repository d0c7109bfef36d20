import { create } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import {
  LeadIntakeService,
  type WatchLeadChangesRequest,
  WatchLeadChangesResponseSchema,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Caller } from '../domain/caller.ts';
import { acknowledgeLeadChanges } from '../usecases/acknowledge-lead-changes.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { LeadChangePoller } from '../usecases/lead-change-poller.ts';
import { pullLeadChanges } from '../usecases/pull-lead-changes.ts';
import { resendLeads } from '../usecases/resend-leads.ts';
import { watchLeadChanges } from '../usecases/watch-lead-changes.ts';
import { callOf, connectionDraining } from './call.ts';
import { callerOf, refuseOtherStudios } from './caller-access.ts';
import { durationMsFromWire, leadChangeToWire } from './convert.ts';
import type { RunCall } from './observation.ts';
import { runStream } from './run-stream.ts';
import { takeUntil } from './take-until.ts';

type LeadChangeMethods = Pick<
  ServiceImpl<typeof LeadIntakeService>,
  'pullLeadChanges' | 'watchLeadChanges' | 'acknowledgeLeadChanges' | 'resendLeads'
>;

/** Implements the methods of the change feed. */
export function leadChangeMethods(
  deps: Dependencies,
  { run, ending }: { readonly run: RunCall; readonly ending: AbortSignal },
): LeadChangeMethods {
  const poller = new LeadChangePoller(deps.store);
  const endOf = (context: HandlerContext) =>
    AbortSignal.any([context.signal, ending, callerOf(context).withdrawn, context.values.get(connectionDraining)]);
  return {
    async pullLeadChanges({ max, wait }, context) {
      const changes = await pullLeadChanges(poller, { max, waitMs: durationMsFromWire(wait) }, endOf(context));
      return { changes: changes.map(leadChangeToWire) };
    },

    watchLeadChanges(request, context) {
      const caller = callerOf(context);
      const call = { ...callOf(LeadIntakeService.method.watchLeadChanges, context.requestHeader, caller), request };
      return runStream(run, call, caller, messagesOf(caller, request, endOf(context)), context.signal);
    },

    async acknowledgeLeadChanges({ acknowledgements }) {
      const converted = acknowledgements.map((each) => ({ ...each, revision: Number(each.revision) }));
      return { acknowledgedCount: await acknowledgeLeadChanges(deps, poller, converted) };
    },

    resendLeads: ({ studioId, pageToken }) => resendLeads(deps, { studioId, pageToken }),
  };

  async function* messagesOf(caller: Caller, request: WatchLeadChangesRequest, end: AbortSignal) {
    refuseOtherStudios(caller, request);
    for await (const changes of takeUntil(end, watchLeadChanges(poller, end))) {
      yield create(WatchLeadChangesResponseSchema, { changes: changes.map(leadChangeToWire) });
    }
  }
}
