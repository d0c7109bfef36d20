import { createInterface } from 'node:readline';
import { type Request, reportOn } from './report-on.ts';

for await (const line of createInterface({ input: process.stdin })) {
  const request: Request = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ id: request.id, ...(await reportOn(request)) })}\n`);
}
