import { create } from '@bufbuild/protobuf';
import {
  type ImportLeadsRequest,
  ImportLeadsResponseSchema,
  LeadImportedSchema,
  type LeadImport as WireImport,
  LeadStage as WireStage,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Refusal } from '../domain/refusal.ts';
import { refusalOfCreation } from '../usecases/create-lead.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { type ImportedLead, importLeads, type LeadImport } from '../usecases/import-leads.ts';
import { contactFromWire, dateFromWire, leadStage } from './convert.ts';
import { connectErrorOf, statusOf } from './refusals.ts';

/** Implements ImportLeads. */
export const leadImporter =
  (deps: Dependencies) =>
  async ({ studioId, leads }: ImportLeadsRequest) => {
    const imported = await importLeads(deps, { studioId, leads: leads.map(importFromWire) });
    return create(ImportLeadsResponseSchema, {
      results: imported.map((result) => ({ outcome: outcomeOf(result) })),
    });
  };

function outcomeOf(result: ImportedLead) {
  if (result.kind === 'refused') return refused(result.refusal);
  const { kind, leadId } = result;
  // The caller has no id to recognise the lead by, so its key conflicts, as that of any creation.
  if (leadId === null) return refused(refusalOfCreation({ kind: 'erased' }));
  const value = create(LeadImportedSchema, { leadId, replayed: kind !== 'imported', erased: kind === 'erased' });
  return { case: 'imported', value } as const;
}

const refused = (refusal: Refusal) => ({ case: 'error', value: statusOf(connectErrorOf(refusal)) }) as const;

function importFromWire(lead: WireImport): LeadImport {
  const { leadId, idempotencyKey, displayName, contact, sourceId, note, stage, createTime, updateTime } = lead;
  return {
    leadId,
    idempotencyKey,
    displayName,
    contact: contactFromWire(contact),
    sourceId,
    note,
    stage: stage === WireStage.UNSPECIFIED ? 'new' : leadStage.fromWire(stage),
    createdAt: dateFromWire(createTime),
    updatedAt: dateFromWire(updateTime),
  };
}
