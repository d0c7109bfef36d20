import { type Request as Call, reportOn } from './report-on.ts';

// The driver's part in workerd: the report on the request in the body.
export default {
  async fetch(request: Request): Promise<Response> {
    const call = (await request.json()) as Call;
    return Response.json({ id: call.id, ...(await reportOn(call)) });
  },
};
