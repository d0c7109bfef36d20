export type { LeadInNeed } from './attention.ts';
export type { Connection, PostgresConnection, SqliteConnection } from './connection.ts';
export type { Delivery, DeliveryOptions, SettledLead } from './delivery.ts';
export { keyFor } from './keys.ts';
export { createOutbox, type Outbox, type OutboxOptions } from './outbox.ts';
export { OutboxError } from './outbox-error.ts';
export {
  createOutboxPage,
  type NodeRequest,
  type NodeResponse,
  type OutboxPage,
  type OutboxPageOptions,
  type PageRequest,
  type PageResponse,
} from './page.ts';
export type { ReconcileOptions } from './reconcile.ts';
export type { Difference, Reconciliation } from './reconciliation.ts';
export type { SendAgainOptions } from './send-again.ts';
export type { WaitingLeads } from './waiting.ts';
export type { WorkerOptions } from './worker.ts';
