/** The state of the table does not permit the operation; see the message. Nothing was changed. */
export class OutboxError extends Error {
  override readonly name = 'OutboxError';
}
