import { create } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import * as wire from '../../proto/gen/leadintake/v1/request_log_pb.ts';
import { timeOfId } from '../domain/new-id.ts';
import type { LoggedRequest } from '../domain/request-log.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { listRequests, type ReportedRequest, requestRecorder } from '../usecases/request-log.ts';
import { readCaller } from './callers.ts';
import { dateFromWire, timestampToWire } from './convert.ts';

export function requestLogService(deps: Dependencies): ServiceImpl<typeof wire.RequestLogService> {
  const record = requestRecorder(deps);
  return {
    async recordRequests({ batchId, requests }, context) {
      const batch = { batchId, requests: requests.map(requestFromWire) };
      return { skippedCount: await record(batch, readCaller(context).studios) };
    },

    async listRequests(request) {
      const { requests, nextPageToken } = await listRequests(deps, request);
      return { requests: requests.map(requestToWire), nextPageToken };
    },
  };
}

const requestFromWire = ({ status, code, leadId, omittedCount, ...request }: wire.LoggedRequest): ReportedRequest => ({
  studioId: request.studioId,
  time: dateFromWire(request.time),
  operation: request.operation,
  apiKeyId: request.apiKeyId,
  secretHint: request.secretHint,
  status: status || null,
  code: code || null,
  faultyFields: request.faultyFields,
  requestId: request.requestId,
  leadId: leadId || null,
  replayed: request.replayed,
  durationMs: request.durationMs,
  omitted: omittedCount,
});

function requestToWire({ id, status, code, leadId, omitted, faultyFields, ...request }: LoggedRequest) {
  return create(wire.LoggedRequestSchema, {
    ...request,
    faultyFields: [...faultyFields],
    time: timestampToWire(timeOfId(id)),
    status: status ?? 0,
    code: code ?? '',
    leadId: leadId ?? '',
    omittedCount: omitted,
  });
}
