import type { DescMethod, DescService } from '@bufbuild/protobuf';
import type { ConnectRouter, ConnectRouterOptions, MethodImpl, ServiceImpl } from '@connectrpc/connect';
import { MAX_EXPORT_MS } from '../../common/deadlines.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { AuditService } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { DirectoryService } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { bearerAuthenticator } from '../usecases/authenticate-api-key.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { apiKeyService } from './api-key-service.ts';
import { auditService } from './audit-service.ts';
import { directoryService } from './directory-service.ts';
import { exchangeService } from './exchange-service.ts';
import { healthService, type Serving } from './health-service.ts';
import type { ItemContext } from './items.ts';
import { leadIntakeService } from './lead-intake-service.ts';
import { reflectionService } from './reflection-service.ts';
import type { RunCall } from './run-call.ts';

/** The largest message with a batch; bytes. A hundred of the largest leads have about 1 MB. */
const MAX_BATCH_BYTES = 1024 * 1024;

const SERVICES = [LeadIntakeService, ExchangeService, ApiKeyService, DirectoryService, AuditService];

const STREAMING = new Set(
  [...SERVICES, Health, ServerReflection]
    .flatMap(({ methods }) => methods)
    .filter(({ methodKind }) => methodKind === 'bidi_streaming')
    .map((method) => `/${method.parent.typeName}/${method.name}`),
);

/** Whether a call by this path may go on sending for as long as it likes. */
export const mayLast = (path: string): boolean => STREAMING.has(path);

/** What the core serves with, besides its use cases. */
export interface Server {
  readonly run: RunCall;
  readonly batchCame: ItemContext['batchCame'];
  readonly serving: Serving;
  /** Whether tools may ask what there is to call. */
  readonly reflects: boolean;
}

/** Every RPC that the core answers. */
export function routes(
  deps: Dependencies,
  { run, batchCame, serving, reflects }: Server,
): (router: ConnectRouter) => void {
  const items = { run, batchCame, authenticate: bearerAuthenticator(deps), ending: serving.ending };
  const names = SERVICES.map((service) => service.typeName);
  return (router) => {
    serve(router, LeadIntakeService, leadIntakeService(deps, items));
    serve(router, ExchangeService, exchangeService(deps, items));
    serve(router, ApiKeyService, apiKeyService(deps, items));
    serve(router, DirectoryService, directoryService(deps));
    serve(router, AuditService, auditService(deps));
    router.service(Health, healthService(names, serving));
    if (reflects) {
      router.service(ServerReflection, reflectionService([...SERVICES, Health, ServerReflection], serving.ending));
    }
  };
}

/** What is otherwise than usual of a method whose messages are many: only batches may be large (imports are some), and exports last for hours. */
const UNUSUAL: Readonly<Partial<Record<DescMethod['methodKind'], Partial<ConnectRouterOptions>>>> = {
  bidi_streaming: { readMaxBytes: MAX_BATCH_BYTES },
  server_streaming: { maxTimeoutMs: MAX_EXPORT_MS },
};

/** Calls whose one message has many of something. */
const LISTS: ReadonlySet<DescMethod> = new Set([
  LeadIntakeService.method.importLeads,
  LeadIntakeService.method.acknowledgeLeadChanges,
]);

function serve<Service extends DescService>(router: ConnectRouter, service: Service, impl: ServiceImpl<Service>): void {
  for (const method of service.methods) {
    const answer = impl[method.localName as keyof typeof impl] as MethodImpl<typeof method>;
    const unusual = LISTS.has(method) ? UNUSUAL.bidi_streaming : UNUSUAL[method.methodKind];
    router.rpc(method, answer, unusual);
  }
}
