import { readGatewayConfig } from './config.ts';
import { openApiDocument } from './docs/openapi.ts';

// Prints the document for checks and client generators, without a running service.
process.stdout.write(JSON.stringify(openApiDocument(readGatewayConfig(process.env).PUBLIC_URL), null, 2));
