import { type GrpcCaller, grpcCaller, startTestCore, type TestCore } from '../support/grpc.ts';
import { forAllTests } from '../tools/for-all-tests.ts';

/** A core for all tests of a file, and a client of it. Only tests and hooks can use them. */
export function aSharedCore(): { readonly core: TestCore; readonly caller: GrpcCaller } {
  const core = forAllTests(
    () => startTestCore(),
    ({ stop }) => stop(),
  );
  const caller = forAllTests(
    async () => grpcCaller(`127.0.0.1:${core.port}`),
    ({ close }) => close(),
  );
  return { core, caller };
}
