import assert from 'node:assert/strict';
import type { Answer, Lead, Page } from './api.ts';

const UUID =
  /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|0{8}-0{4}-0{4}-0{4}-0{12}|f{8}-f{4}-f{4}-f{4}-f{12})$/i;
const UTC_TIME = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z$/;
const STAGES = ['new', 'contacted', 'trial_booked', 'trial_attended', 'won', 'lost'];
const FIELDS = ['createdAt', 'displayName', 'id', 'note', 'sourceId', 'stage', 'updatedAt'];
const CURSOR = /^[A-Za-z0-9_-]{1,512}$/;

/** The lead of an answer that has one. @throws AssertionError */
export function leadOf(answer: Answer, status: 200 | 201): Lead {
  const body = bodyOf(answer, status, 'application/json');
  assert.deepEqual(Object.keys(body), ['lead'], `the answer's properties are not just "lead": ${answer.text}`);
  return checkedLead(body.lead);
}

/** The page of an answer that has one. @throws AssertionError */
export function pageOf(answer: Answer): Page {
  const body = bodyOf(answer, 200, 'application/json');
  assert.deepEqual(
    Object.keys(body).toSorted(),
    ['leads', 'nextCursor'],
    `not the properties of a list: ${answer.text}`,
  );
  const { leads, nextCursor } = body as unknown as Page;
  assert(Array.isArray(leads), '"leads" is no array');
  assert(leads.length <= 100, `a page of ${leads.length} leads`);
  assert(nextCursor === null || CURSOR.test(nextCursor), `not a cursor, nor null: ${nextCursor}`);
  return { leads: leads.map(checkedLead), nextCursor };
}

/** An error's body. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail?: string;
  readonly fields?: Readonly<Record<string, readonly string[]>>;
  readonly requestId: string;
}

/** Expects a refusal with a status and a code, and gives its body. @throws AssertionError */
export function refusalOf(answer: Answer, status: number, code: string): Problem {
  const problem = bodyOf(answer, status, 'application/problem+json') as unknown as Problem;
  assert.equal(problem.code, code, `refused with ${problem.code} in place of ${code}: ${answer.text}`);
  return problem;
}

/** Expects every field of an error to be as the contract has it. @throws AssertionError */
export function checkProblem(problem: Problem, status: number): void {
  const { type, title, code, detail, fields = {}, requestId } = problem;
  assert(
    typeof type === 'string' && (URL.canParse(type) || URL.canParse(type, 'https://example.com')),
    'no URI as type',
  );
  assert(typeof title === 'string' && title !== '', 'no title');
  assert.equal(problem.status, status, `the body says ${problem.status}, the answer ${status}`);
  assert.match(code, /^[a-z][a-z0-9_]*$/);
  assert(detail === undefined || (typeof detail === 'string' && detail !== ''), 'an empty detail');
  for (const [name, messages] of Object.entries(fields)) {
    const isList =
      Array.isArray(messages) && messages.every((message) => typeof message === 'string' && message !== '');
    assert(isList, `the messages of the field ${name} are no list of texts`);
  }
  assert(typeof requestId === 'string' && /^.{1,128}$/s.test(requestId), `not a request id: ${requestId}`);
}

function bodyOf({ status, headers, text }: Answer, expected: number, type: string): Record<string, unknown> {
  assert.equal(status, expected, `answered with ${status} in place of ${expected}: ${text.slice(0, 500)}`);
  const mediaType = headers.get('content-type')?.split(';')[0];
  assert.equal(mediaType, type, `the media type is ${mediaType} in place of ${type}`);
  try {
    return JSON.parse(text);
  } catch {
    assert.fail(`not JSON: ${text.slice(0, 500)}`);
  }
}

function checkedLead(value: unknown): Lead {
  const shown = JSON.stringify(value);
  assert(typeof value === 'object' && value !== null, `no lead: ${shown}`);
  assert.deepEqual(Object.keys(value).toSorted(), FIELDS, `not the fields of a lead: ${shown}`);
  const lead = value as Lead;
  assert.match(lead.id, UUID);
  assert(typeof lead.displayName === 'string' && lead.displayName.length >= 1, `not a name: ${shown}`);
  assert(STAGES.includes(lead.stage), `not a stage: ${lead.stage}`);
  assert(lead.sourceId === null || UUID.test(lead.sourceId), `not a source: ${lead.sourceId}`);
  assert(lead.note === null || typeof lead.note === 'string', `not a note: ${shown}`);
  for (const time of [lead.createdAt, lead.updatedAt]) {
    const [, day] = UTC_TIME.exec(time) ?? [];
    // A day that the calendar does not have comes back as another one, or as none.
    const known = new Date(time);
    assert(
      !Number.isNaN(known.getTime()) && known.toISOString().startsWith(day ?? 'none'),
      `not a time in UTC: ${time}`,
    );
  }
  return lead;
}
