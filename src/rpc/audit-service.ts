import type { ServiceImpl } from '@connectrpc/connect';
import type { AuditService } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { listAuditEvents } from '../usecases/list-audit-events.ts';
import { auditEventToWire } from './convert.ts';

export function auditService(deps: Dependencies): ServiceImpl<typeof AuditService> {
  return {
    async listAuditEvents({ studioId, leadId }) {
      return { events: (await listAuditEvents(deps, { studioId, leadId })).map(auditEventToWire) };
    },
  };
}
