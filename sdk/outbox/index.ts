export type { LeadInNeed } from './attention.ts';
export type { Connection, PostgresConnection, SqliteConnection } from './connection.ts';
export type { Delivery, DeliveryOptions, SettledLead } from './delivery.ts';
export { keyFor } from './keys.ts';
export { createOutbox, type Outbox, type OutboxOptions } from './outbox.ts';
export { OutboxError } from './outbox-error.ts';
export type { WorkerOptions } from './worker.ts';
