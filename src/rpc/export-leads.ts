import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect';
import { type ExportLeadsRequest, LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { exportLeads } from '../usecases/export-leads.ts';
import { callOf } from './call.ts';
import { callerOf, refuseOtherStudios, withdrawnNow } from './caller-access.ts';
import { leadToWire } from './convert.ts';
import type { ItemContext } from './items.ts';
import { runStream } from './run-stream.ts';

/** Sends all leads, page by page, as fast as they are taken. */
export function leadExporter(deps: Dependencies, { run, ending }: Pick<ItemContext, 'run' | 'ending'>) {
  return ({ studioId, resumeToken }: ExportLeadsRequest, context: HandlerContext) => {
    const { requestHeader, signal } = context;
    const caller = callerOf(context);
    /** What is told of it. */
    const told = { studioId, leads: 0 };
    const call = { ...callOf(LeadIntakeService.method.exportLeads, requestHeader, caller), request: told };
    return runStream(run, call, messages(), signal);

    async function* messages() {
      refuseOtherStudios(caller, { studioId });
      for await (const { leads, resumeToken: token } of exportLeads(deps, { studioId, resumeToken })) {
        if (caller.withdrawn.aborted) throw withdrawnNow();
        if (ending.aborted) throw new ConnectError('the service stops: go on with the resume token', Code.Unavailable);
        yield { leads: leads.map((lead) => leadToWire(lead, 'full')), resumeToken: token };
        told.leads += leads.length;
      }
    }
  };
}
