/** The parts of a soak, in the order in which they run, with the paths of their suites or the beginnings of them. */
export const PARTS: Readonly<Record<string, readonly string[]>> = {
  // Comes first, because it measures response times on a machine that nothing has heated up.
  isolation: ['test/soak/isolation-in-time'],
  lives: ['test/simulation'],
  bugs: ['test/planted-bugs'],
  crashes: ['test/crash'],
  requests: [
    'test/security/hostile-input',
    'test/e2e/schemathesis',
    'test/unit/contact-keys',
    'test/integration/request-rules',
  ],
  databases: ['test/contract/mongo-plans', 'test/contract/sqlite-store', 'test/contract/mongo-store'],
  processes: [
    'test/e2e/alerts',
    'test/e2e/production-install',
    'test/e2e/rolling-restart',
    'test/e2e/reused-port',
    'test/e2e/stopped-while-starting',
    'test/upgrade/migration',
    'test/upgrade/neighbours',
    'test/containers',
  ],
  clients: ['sdk/test/outbox', 'sdk/test/conformance', 'sdk/test/wordpress'],
  examples: ['examples/test'],
};
