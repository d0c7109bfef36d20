/** Whether a text may name a request in logs and answers. */
export function isRequestId(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(text);
}
