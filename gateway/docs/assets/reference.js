/** Returns a new UUID. `crypto.randomUUID` exists only on pages served over TLS or from this computer. */
function newUuid() {
  const digits = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0'));
  const text = digits.join('');
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-4${text.slice(13, 16)}-8${text.slice(17, 20)}-${text.slice(20)}`;
}

// Relative to the page, which may be served under a prefix.
const openApi = await (await fetch('../v1/openapi.json')).text();
const { post } = Object.values(JSON.parse(openApi).paths).find((operations) => operations.post);
const documentedKey = post.parameters.find(({ name }) => name === 'Idempotency-Key').example;
const { contact } = post.requestBody.content['application/json'].examples.email.value;
const exampleKey = newUuid();
// A new person for each page, so that an earlier Send of the example is no conflict.
const example = openApi
  .replaceAll(documentedKey, exampleKey)
  .replaceAll(contact.value, `${exampleKey.slice(0, 8)}-${contact.value}`);

window.Scalar.createApiReference('#content', {
  content: JSON.parse(example),
  // Replaces the example key by a new one per request. Otherwise all requests but the first would get a conflict.
  onRequestBuilt({ request }) {
    if (request.headers.get('idempotency-key') === exampleKey) request.headers.set('idempotency-key', newUuid());
  },
  // On a phone, the response is out of sight below the request.
  onResponseReceived() {
    setTimeout(() => document.querySelector('section[aria-label="Response"]')?.scrollIntoView());
  },
  // No requests to third parties.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  // The page has its own search, over all pages.
  hideSearch: true,
  hideDarkModeToggle: true,
  documentDownloadType: 'direct',
  authentication: { preferredSecurityScheme: 'apiKey' },
});
