/** Whether a text may identify a request in logs and responses. @rule 7.request-id 8.requestId */
export function isRequestId(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(text);
}
