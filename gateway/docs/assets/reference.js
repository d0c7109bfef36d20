window.Scalar.createApiReference('#reference', {
  // Relative to the page, which may be served under a prefix.
  url: 'v1/openapi.json',
  // No requests to third parties.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  hideDarkModeToggle: true,
  documentDownloadType: 'direct',
  authentication: { preferredSecurityScheme: 'apiKey' },
});
