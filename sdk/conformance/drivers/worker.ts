import { type Request as Call, reportOn } from './report-on.ts';

// The part of the driver that runs in workerd. It responds with the report on the request in the body.
export default {
  async fetch(request: Request): Promise<Response> {
    const call = (await request.json()) as Call;
    return Response.json({ id: call.id, ...(await reportOn(call)) });
  },
};
