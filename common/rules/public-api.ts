import { hasSecretForm } from './key-secret.ts';

/* Facts about the public API that both processes share. */

/** The scope that each operation requires of a key. @rule 5.3 5.9 */
export const SCOPE_OF = { createLead: 'leads.create', getLead: 'leads.read', listLeads: 'leads.read' } as const;

export type KeyOperation = keyof typeof SCOPE_OF;

/** The maximum and the default number of leads per page. @rule 8.limit 8.leads */
export const PAGE_SIZE = { max: 100, fallback: 25 } as const;

/** Returns whether a text may identify a request in logs and responses; secrets may not. @rule 7.request-id 8.requestId */
export const isRequestId = (text: unknown): text is string =>
  typeof text === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(text) && !hasSecretForm(text);

/** The stages of a lead. @rule 2.1.stage 3.1.stages */
export const STAGES = ['new', 'contacted', 'trial_booked', 'trial_attended', 'won', 'lost'] as const;

/** A lead of the public API. The core serialises it. The gateway passes it on unchanged and describes it in its schemas. */
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
