import { hasSecretForm } from './key-secret.ts';

/* What both processes must have alike about the public API. */

/** The scope of a key that each operation requires. @rule 5.3 5.9 */
export const SCOPE_OF = { createLead: 'leads.create', getLead: 'leads.read', listLeads: 'leads.read' } as const;

export type KeyOperation = keyof typeof SCOPE_OF;

/** Leads per page: the maximum, and the default. @rule 8.limit 8.leads */
export const PAGE_SIZE = { max: 100, fallback: 25 } as const;

/** Whether a text may identify a request in logs and responses; not one with the form of a secret. @rule 7.request-id 8.requestId */
export const isRequestId = (text: unknown): text is string =>
  typeof text === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(text) && !hasSecretForm(text);

/** The stages of a lead. @rule 2.1.stage 3.1.stages */
export const STAGES = ['new', 'contacted', 'trial_booked', 'trial_attended', 'won', 'lost'] as const;

/** A lead. The core serialises it; the gateway passes it on unchanged and describes it in its schemas. */
export interface PublicLead {
  readonly id: string;
  readonly displayName: string;
  readonly stage: (typeof STAGES)[number];
  readonly sourceId: string | null;
  readonly note: string | null;
  /** ISO 8601, UTC, milliseconds. */
  readonly createdAt: string;
  readonly updatedAt: string;
}
