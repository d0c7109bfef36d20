import type { ConnectRouter } from '@connectrpc/connect';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { DirectoryService } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { apiKeyService } from './api-key-service.ts';
import { directoryService } from './directory-service.ts';
import { healthService } from './health-service.ts';
import { leadIntakeService } from './lead-intake-service.ts';

const SERVICES = [LeadIntakeService, ApiKeyService, DirectoryService];

/** Every RPC that the core answers. */
export function routes(deps: Dependencies, isServing: () => Promise<boolean>): (router: ConnectRouter) => void {
  const names = SERVICES.map((service) => service.typeName);
  return (router) => {
    router.service(LeadIntakeService, leadIntakeService(deps));
    router.service(ApiKeyService, apiKeyService(deps));
    router.service(DirectoryService, directoryService(deps));
    router.service(Health, healthService(names, isServing));
  };
}
