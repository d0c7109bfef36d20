import { create } from '@bufbuild/protobuf';
import {
  type ImportLeadsRequest,
  ImportLeadsResponseSchema,
  LeadImportedSchema,
  type LeadImport as WireImport,
  LeadStage as WireStage,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
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

const outcomeOf = (result: ImportedLead) =>
  'refusal' in result
    ? ({ case: 'error', value: statusOf(connectErrorOf(result.refusal)) } as const)
    : ({ case: 'imported', value: create(LeadImportedSchema, result) } as const);

function importFromWire(lead: WireImport): LeadImport {
  const { idempotencyKey, displayName, contact, sourceId, note, stage, createTime, updateTime } = lead;
  return {
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
