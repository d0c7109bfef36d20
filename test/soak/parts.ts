/** A part of a soak: its suites by the beginning of their paths, and sizes that are smaller than those that SOAK sets, or none. */
interface Part {
  readonly suites: readonly string[];
  readonly sizes?: Readonly<Record<string, string>>;
}

/** The parts, in the order in which they run. Together they take two hours on two quiet cores. */
export const PARTS: Readonly<Record<string, Part>> = {
  // It measures response times, so nothing has warmed up the machine before.
  isolation: { suites: ['test/soak/isolation-in-time'] },
  lives: { suites: ['test/simulation'], sizes: { SIMULATION_SECONDS: '1200' } },
  bugs: { suites: ['test/planted-bugs'], sizes: { PLANTED_BUGS: 'all' } },
  crashes: { suites: ['test/crash'], sizes: { CRASH_KILLS: '100', POWER_CUTS: '100', FAILOVERS: '10' } },
  requests: {
    suites: ['test/security/hostile-input', 'test/e2e/schemathesis', 'test/unit/contact-keys'],
    sizes: { HOSTILE_COUNT: '300000', SCHEMATHESIS_SECONDS: '300' },
  },
  databases: {
    suites: ['test/contract/mongo-plans', 'test/contract/sqlite-store', 'test/contract/mongo-store'],
    sizes: { PLANNED_LEADS: '50000', PLANNED_STUDIOS: '1000' },
  },
  processes: {
    suites: [
      'test/e2e/production-install',
      'test/e2e/rolling-restart',
      'test/e2e/reused-port',
      'test/e2e/stopped-while-starting',
      'test/upgrade/neighbours',
      'test/containers',
    ],
  },
  clients: {
    suites: ['sdk/test/outbox', 'sdk/test/conformance', 'sdk/test/wordpress'],
    sizes: { ARRIVAL_LEADS: '20000' },
  },
  examples: { suites: ['examples/test'] },
};
