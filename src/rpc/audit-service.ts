import { create } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { type AuditService, ExportAuditEventsResponseSchema } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { exportAuditEvents } from '../usecases/export-audit.ts';
import { listAuditEvents } from '../usecases/studios.ts';
import { auditEventToWire, dateFromWire, timestampToWire } from './convert.ts';
import { runStream, type StreamContext, throwIfStopping } from './run-stream.ts';

export function auditService(deps: Dependencies, { run, ending }: StreamContext): ServiceImpl<typeof AuditService> {
  return {
    async listAuditEvents({ studioId, leadId }) {
      return { events: (await listAuditEvents(deps, { studioId, leadId })).map(auditEventToWire) };
    },

    exportAuditEvents: ({ startTime, endTime, resumeToken }, context) =>
      runStream(run, context, {}, async function* () {
        const query = { start: dateFromWire(startTime), end: dateFromWire(endTime), resumeToken };
        for await (const { events, end, ...part } of exportAuditEvents(deps, query)) {
          throwIfStopping(ending, 'continue with the resume token');
          const sent = { ...part, events: events.map(auditEventToWire), endTime: timestampToWire(end) };
          yield create(ExportAuditEventsResponseSchema, sent);
        }
      }),
  };
}
