import { uuidFault } from '../../common/rules/field-rules.ts';
import type { AuditEvent } from '../domain/audit.ts';
import { Faults } from '../domain/refusal.ts';
import type { AuditStore, DirectoryStore } from '../store/store.ts';
import { existingStudio } from './keep-directory.ts';

/** A request for audit events, not yet checked. */
export interface AuditQuery {
  readonly studioId: string;
  /** Undefined: the studio and its keys. */
  readonly leadId: string | undefined;
}

/**
 * Lists the audit events of a studio and its keys, or of a lead.
 *
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function listAuditEvents(
  { store }: { readonly store: AuditStore & DirectoryStore },
  { studioId, leadId }: AuditQuery,
): Promise<AuditEvent[]> {
  const faults = new Faults();
  if (leadId !== undefined) faults.note('leadId', uuidFault(leadId));
  await existingStudio(store, studioId, faults);
  return store.listAuditEvents(studioId, leadId?.toLowerCase() ?? null);
}
