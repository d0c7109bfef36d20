import { afterAll, beforeAll } from 'vitest';
import { type GrpcCaller, grpcCaller, startTestCore, type TestCore } from '../support/grpc.ts';

/** A core for all tests of a file, and a client of it. Both can be used in tests and hooks only. */
export function aSharedCore(): { readonly core: TestCore; readonly caller: GrpcCaller } {
  let core: TestCore | undefined;
  let caller: GrpcCaller | undefined;
  beforeAll(async () => {
    core = await startTestCore();
    caller = grpcCaller(`127.0.0.1:${core.port}`);
  });
  afterAll(async () => {
    caller?.close();
    await core?.stop();
  });
  // Proxies, so that a test file can declare both as constants.
  const current = <Part extends object>(part: () => Part | undefined): Part =>
    new Proxy({} as Part, { get: (_, name) => part()?.[name as keyof Part] });
  return { core: current(() => core), caller: current(() => caller) };
}
