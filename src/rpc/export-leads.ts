import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect';
import { type ExportLeadsRequest, LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { exportLeads } from '../usecases/export-leads.ts';
import { callOf } from './call.ts';
import { callerOf, refuseOtherStudios } from './caller-access.ts';
import { leadToWire } from './convert.ts';
import type { ExchangeContext } from './exchange-service.ts';
import { runStream } from './run-stream.ts';

/** Implements ExportLeads: sends page after page as fast as the caller reads them. */
export function leadExporter(deps: Dependencies, { run, ending }: Pick<ExchangeContext, 'run' | 'ending'>) {
  return ({ studioId, resumeToken }: ExportLeadsRequest, context: HandlerContext) => {
    const { requestHeader, signal } = context;
    const caller = callerOf(context);
    /** What the log line has instead of the request. */
    const summary = { studioId, leads: 0 };
    const call = { ...callOf(LeadIntakeService.method.exportLeads, requestHeader, caller), request: summary };
    return runStream(run, call, caller, messages(), signal);

    async function* messages() {
      refuseOtherStudios(caller, { studioId });
      for await (const { leads, resumeToken: token, skippedCount } of exportLeads(deps, { studioId, resumeToken })) {
        if (ending.aborted)
          throw new ConnectError('the service is stopping: continue with the resume token', Code.Unavailable);
        yield { leads: leads.map((lead) => leadToWire(lead, 'full')), resumeToken: token, skippedCount };
        summary.leads += leads.length;
      }
    }
  };
}
