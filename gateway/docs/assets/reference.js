/** Returns a new UUID. `crypto.randomUUID` exists only on pages that came over TLS or from this computer. */
function newUuid() {
  const digits = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0'));
  const text = digits.join('');
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-4${text.slice(13, 16)}-8${text.slice(17, 20)}-${text.slice(20)}`;
}

// Relative to the page, which may be served under a prefix.
const openApi = await (await fetch('../v1/openapi.json')).json();
const parameters = Object.values(openApi.paths).flatMap(({ post }) => post?.parameters ?? []);
const exampleKey = parameters.find(({ name }) => name === 'Idempotency-Key').example;

window.Scalar.createApiReference('#content', {
  content: openApi,
  // A key that nobody has typed is a new one for each request: with that of the document, all but the first would get a conflict.
  onRequestBuilt({ request }) {
    if (request.headers.get('idempotency-key') === exampleKey) request.headers.set('idempotency-key', newUuid());
  },
  // No requests to third parties.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  // The page has one of its own, over all pages.
  hideSearch: true,
  hideDarkModeToggle: true,
  documentDownloadType: 'direct',
  authentication: { preferredSecurityScheme: 'apiKey' },
});
