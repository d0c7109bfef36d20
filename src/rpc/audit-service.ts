import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect';
import { AuditService, ExportAuditEventsResponseSchema } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { exportAuditEvents } from '../usecases/export-audit.ts';
import { listAuditEvents } from '../usecases/studios.ts';
import { callerOf, refuseOtherStudios } from './callers.ts';
import { auditEventToWire, dateFromWire } from './convert.ts';
import type { ExchangeContext } from './exchange-service.ts';
import { runStream } from './lead-intake-service.ts';
import { callOf } from './observation.ts';

export function auditService(
  deps: Dependencies,
  { run, ending }: Pick<ExchangeContext, 'run' | 'ending'>,
): ServiceImpl<typeof AuditService> {
  return {
    async listAuditEvents({ studioId, leadId }) {
      return { events: (await listAuditEvents(deps, { studioId, leadId })).map(auditEventToWire) };
    },

    exportAuditEvents(request, context) {
      const caller = callerOf(context);
      const call = { ...callOf(AuditService.method.exportAuditEvents, context.requestHeader, caller), request: {} };
      return runStream(run, call, caller, messages(), context.signal);

      async function* messages() {
        refuseOtherStudios(caller, request);
        const { startTime, endTime, resumeToken } = request;
        const query = { start: dateFromWire(startTime), end: dateFromWire(endTime), resumeToken };
        for await (const { events, end, ...part } of exportAuditEvents(deps, query)) {
          if (ending.aborted)
            throw new ConnectError('the service is stopping: continue with the resume token', Code.Unavailable);
          const sent = { ...part, events: events.map(auditEventToWire), endTime: timestampFromDate(end) };
          yield create(ExportAuditEventsResponseSchema, sent);
        }
      }
    },
  };
}
