import assert from 'node:assert/strict';
import { UUID_PATTERN } from '../common/rules/field-rules.ts';
import type { ProblemCode } from '../gateway/problems.ts';
import type { Answer, Lead, Page } from './api.ts';

const UUID = new RegExp(UUID_PATTERN);
const UTC_TIME = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z$/;
const STAGES = ['new', 'contacted', 'trial_booked', 'trial_attended', 'won', 'lost'];
const FIELDS = ['createdAt', 'displayName', 'id', 'note', 'sourceId', 'stage', 'updatedAt'];
const CURSOR = /^[A-Za-z0-9_-]{1,512}$/;

/** Expects a response with a valid lead, and returns the lead. @throws AssertionError */
export function expectLeadIn(answer: Answer, status: 200 | 201): Lead {
  const body = expectBodyIn(answer, status, 'application/json');
  assert.deepEqual(Object.keys(body), ['lead'], `the response does not have just the property "lead": ${answer.text}`);
  return checkedLead(body.lead);
}

/** Expects a response with a valid page, and returns the page. @throws AssertionError */
export function expectPageIn(answer: Answer): Page {
  const body = expectBodyIn(answer, 200, 'application/json');
  assert.deepEqual(
    Object.keys(body).toSorted(),
    ['leads', 'nextCursor'],
    `the response does not have the properties of a list: ${answer.text}`,
  );
  const { leads, nextCursor } = body;
  assert(Array.isArray(leads), '"leads" is not an array');
  assert(leads.length <= 100, `a page has ${leads.length} leads`);
  const isCursor = nextCursor === null || (typeof nextCursor === 'string' && CURSOR.test(nextCursor));
  assert(isCursor, `nextCursor is neither a cursor nor null: ${nextCursor}`);
  return { leads: leads.map(checkedLead), nextCursor };
}

/** The body of an error. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail?: string;
  readonly fields?: Readonly<Record<string, readonly string[]>>;
  readonly requestId: string;
}

/** Expects an error with a status and a code, and returns its body. @throws AssertionError */
export function expectRefusalIn(answer: Answer, status: number, code: ProblemCode): Problem {
  const problem = expectBodyIn(answer, status, 'application/problem+json') as unknown as Problem;
  assert.equal(problem.code, code, `the code is ${problem.code} instead of ${code}: ${answer.text}`);
  return problem;
}

/** Expects every field of an error to follow the contract. @throws AssertionError */
export function expectValidProblem(problem: Problem, status: number): void {
  const { type, title, code, detail, fields = {}, requestId } = problem;
  assert(
    typeof type === 'string' && (URL.canParse(type) || URL.canParse(type, 'https://example.com')),
    '"type" is not a URI',
  );
  assert(typeof title === 'string' && title !== '', '"title" is missing or empty');
  assert.equal(problem.status, status, `the body has the status ${problem.status}, the response ${status}`);
  assert.match(code, /^[a-z][a-z0-9_]*$/);
  assert(detail === undefined || (typeof detail === 'string' && detail !== ''), '"detail" is empty');
  for (const [name, messages] of Object.entries(fields)) {
    const isList =
      Array.isArray(messages) && messages.every((message) => typeof message === 'string' && message !== '');
    assert(isList, `the messages of the field ${name} are not a list of non-empty strings`);
  }
  assert(typeof requestId === 'string' && /^.{1,128}$/s.test(requestId), `"requestId" is invalid: ${requestId}`);
}

function expectBodyIn({ status, headers, text }: Answer, expected: number, type: string): Record<string, unknown> {
  assert.equal(status, expected, `the status is ${status} instead of ${expected}: ${text.slice(0, 500)}`);
  const mediaType = headers.get('content-type')?.split(';')[0];
  assert.equal(mediaType, type, `the media type is ${mediaType} instead of ${type}`);
  try {
    return JSON.parse(text);
  } catch {
    assert.fail(`the body is not JSON: ${text.slice(0, 500)}`);
  }
}

function checkedLead(value: unknown): Lead {
  const shown = JSON.stringify(value);
  assert(typeof value === 'object' && value !== null, `not a lead: ${shown}`);
  assert.deepEqual(Object.keys(value).toSorted(), FIELDS, `not the fields of a lead: ${shown}`);
  const lead = value as Lead;
  assert.match(lead.id, UUID);
  assert(typeof lead.displayName === 'string' && lead.displayName.length >= 1, `not a name: ${shown}`);
  assert(STAGES.includes(lead.stage), `not a stage: ${lead.stage}`);
  assert(lead.sourceId === null || UUID.test(lead.sourceId), `not a source: ${lead.sourceId}`);
  assert(lead.note === null || typeof lead.note === 'string', `not a note: ${shown}`);
  for (const time of [lead.createdAt, lead.updatedAt]) {
    const [, day] = UTC_TIME.exec(time) ?? [];
    // Date turns a day that does not exist into another day, or into an invalid date.
    const parsed = new Date(time);
    assert(
      !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(day ?? 'none'),
      `not a time in UTC: ${time}`,
    );
  }
  return lead;
}
