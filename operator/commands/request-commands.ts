import { eachPage } from '../../src/domain/cursor.ts';
import { timeOfId } from '../../src/domain/new-id.ts';
import type { LoggedRequest } from '../../src/domain/request-log.ts';
import { listRequests } from '../../src/usecases/request-log.ts';
import { isJson, program, runOnStore } from './program.ts';

interface RequestOptions {
  readonly failed?: true;
  readonly requestId?: string;
  readonly key?: string;
}

const NONE_FOUND = 'no request was found: gateways record requests only with GATEWAY_REQUEST_LOG=yes, and for 24 hours';

export function addRequestCommand(): void {
  program
    .command('requests <studio>')
    .description(
      'list the last 1,000 requests of a studio that gateways recorded in the last 24 hours, and their responses, newest first',
    )
    .option('--failed', 'only those that did not succeed')
    .option('--request-id <id>', 'only those with this X-Request-Id, in full')
    .option('--key <id>', 'only those of a key')
    .action((studioId: string, { failed, requestId: xRequestId, key: apiKeyId }: RequestOptions) =>
      runOnStore(async (deps) => {
        const query = { studioId, failed: failed ?? false, xRequestId, apiKeyId, pageSize: 0 };
        const pages = eachPage((pageToken) => listRequests(deps, { ...query, pageToken }));
        const found = (await Array.fromAsync(pages)).flatMap(({ requests }) => requests);
        if (found.length === 0) console.error(NONE_FOUND);
        if (isJson()) return found.map(wholeRequest);
        const [only] = found;
        return xRequestId !== undefined && only && found.length === 1 ? wholeRequest(only) : found.map(toRequestRow);
      }),
    );
}

const wholeRequest = ({ id, studioId: _, ...request }: LoggedRequest) => ({ time: timeOfId(id), ...request });

/** Returns a table row that fits into a terminal: it has no ids. */
const toRequestRow = ({ id, operation, status, code, replayed, faultyFields, secretHint, omitted }: LoggedRequest) => ({
  time: timeOfId(id).toISOString().slice(5, 19).replace('T', ' '),
  operation,
  answer: [status ?? 'not answered', code?.replace(/^integration_/, ''), replayed && 'replayed']
    .filter(Boolean)
    .join(' '),
  fields: faultyFields,
  key: secretHint,
  omitted: omitted > 0 ? `+${omitted}` : '',
});
