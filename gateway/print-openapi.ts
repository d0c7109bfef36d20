import { readGatewayConfig } from './config.ts';
import { openApiDocument } from './docs/openapi.ts';

// For checks and client generators, which need the document without a running service.
process.stdout.write(JSON.stringify(openApiDocument(readGatewayConfig(process.env).PUBLIC_URL), null, 2));
