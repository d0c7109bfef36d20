import { readGatewayConfig } from './config.ts';
import { openApiDocument } from './docs/openapi.ts';

// For whom needs the document before there is a service: checks, generators of clients.
process.stdout.write(JSON.stringify(openApiDocument(readGatewayConfig(process.env).PUBLIC_URL), null, 2));
