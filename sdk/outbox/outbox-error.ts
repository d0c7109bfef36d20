/** The state of the table or its connection does not permit the operation; see the message. */
export class OutboxError extends Error {
  override readonly name = 'OutboxError';
}
