import type { RuleId } from '../conformance/contract-rules.ts';

/** What proves a rule of the public contract. */
export interface RuleProof {
  readonly id: RuleId;
  /** Titles of tests, by the file under `test/` that has them. Nothing only with a reason. */
  readonly provenBy?: Readonly<Record<string, readonly string[]>>;
  /** Why no test can prove it. */
  readonly reason?: string;
}

const CREATE = 'e2e/http/create-lead.test.ts';
const BOUNDS = 'e2e/http/field-bounds.test.ts';
const BAD_INPUT = 'e2e/http/bad-input.test.ts';
const READ = 'e2e/http/read-lead.test.ts';
const LIST = 'e2e/http/list-leads.test.ts';
const AUTHENTICATION = 'e2e/http/authentication.test.ts';
const API_KEYS = 'e2e/http/api-keys.test.ts';
const QUOTA = 'e2e/http/quota.test.ts';
const IDEMPOTENCY = 'e2e/http/idempotency.test.ts';
const ONE_OPEN = 'e2e/http/one-open-lead.test.ts';
const ROUTES = 'e2e/http/routes.test.ts';
const HEADERS = 'e2e/http/headers.test.ts';
const PROBLEMS = 'e2e/http/problem-details.test.ts';
const CHECK_ORDER = 'e2e/http/check-order.test.ts';

const EXACT_LEAD = ['is answered with 201 and exactly the fields of the contract'];
const WITHIN_BOUNDS = 'a value within its bounds is accepted and answered unchanged: %s';
const OUTSIDE_BOUNDS = 'a value outside its bounds is refused by name, and nothing is written: %s';
const BOUNDED = { [BOUNDS]: [WITHIN_BOUNDS, OUTSIDE_BOUNDS] };
const WRONG_TYPE = 'a value that is missing or of the wrong type is refused by name, and nothing is written: %s';
const EVERY_ERROR = { [PROBLEMS]: ['keeps every rule of the contract, and always has the same title: %s'] };
const NO_WHOLE_KEY = 'without a whole key is refused with 401, and nothing is written: %s';

/** The proofs of every rule of the contract. */
export const RULE_PROOFS: readonly RuleProof[] = [
  {
    id: '1 own studio',
    provenBy: { [AUTHENTICATION]: ["opens its own studio's leads only, whatever the request says of another"] },
  },
  {
    id: '1 no browser',
    provenBy: { [HEADERS]: ['no answer has a CORS header: %s', 'a preflight is answered without a CORS header'] },
  },

  {
    id: '2.1 id',
    provenBy: { [CREATE]: [...EXACT_LEAD, 'starts as new, unchanged since it was created, under a version 7 id'] },
  },
  {
    id: '2.1 displayName',
    provenBy: { [CREATE]: [...EXACT_LEAD, 'comes back with its texts unchanged: %s'], [BOUNDS]: [WITHIN_BOUNDS] },
  },
  {
    id: '2.1 stage',
    provenBy: { [READ]: ['a lead is read in its current state: %s, and back to new'] },
  },
  {
    id: '2.1 sourceId',
    provenBy: { [CREATE]: [...EXACT_LEAD, 'has null for the source and the note that were not given'] },
  },
  {
    id: '2.1 note',
    provenBy: {
      [CREATE]: [
        ...EXACT_LEAD,
        'has null for the source and the note that were not given',
        'comes back with its texts unchanged: %s',
      ],
    },
  },
  {
    id: '2.1 createdAt',
    provenBy: { [CREATE]: [...EXACT_LEAD, 'starts as new, unchanged since it was created, under a version 7 id'] },
  },
  {
    id: '2.1 updatedAt',
    provenBy: {
      [CREATE]: EXACT_LEAD,
      [READ]: ['a lead is read in its current state: %s, and back to new'],
    },
  },
  {
    id: '2.1 no contact',
    provenBy: { [CREATE]: ['keeps its contact as it was typed and never answers it: %s'] },
  },

  {
    id: '2.2 displayName',
    provenBy: { ...BOUNDED, [BAD_INPUT]: [WRONG_TYPE] },
  },
  {
    id: '2.2 contact',
    provenBy: {
      [BAD_INPUT]: [
        WRONG_TYPE,
        'a contact of a type that does not exist is refused: "%s"',
        'in the contact is refused by name, and nothing is written: "%s"',
      ],
    },
  },
  {
    id: '2.2 sourceId',
    provenBy: {
      [BAD_INPUT]: [WRONG_TYPE, 'a sourceId that is no UUID is refused: %s'],
      [CREATE]: [
        'that is %s is refused, and nothing is written',
        'has null for the source and the note that were not given',
      ],
    },
  },
  {
    id: '2.2 note',
    provenBy: {
      ...BOUNDED,
      [BAD_INPUT]: [WRONG_TYPE],
      [CREATE]: ['has null for the source and the note that were not given'],
    },
  },
  { id: '2.2 email', provenBy: BOUNDED },
  { id: '2.2 phone', provenBy: BOUNDED },
  {
    id: '2.2 unknown properties',
    provenBy: {
      [BAD_INPUT]: [
        'beside the others is refused by name, and nothing is written: "%s"',
        'that looks like a prototype lends nothing to what is missing',
      ],
    },
  },

  { id: '2.3 lead', provenBy: { [CREATE]: EXACT_LEAD } },

  {
    id: '2.4 leads',
    provenBy: {
      [LIST]: [
        'followed to its end by its cursors has every lead once',
        'has each lead as it would be read alone, in its current state',
      ],
    },
  },
  {
    id: '2.4 nextCursor',
    provenBy: {
      [LIST]: ['followed to its end by its cursors has every lead once', 'of a studio without leads is one empty page'],
    },
  },

  { id: '2.5 type', provenBy: EVERY_ERROR },
  { id: '2.5 title', provenBy: EVERY_ERROR },
  { id: '2.5 status', provenBy: EVERY_ERROR },
  { id: '2.5 code', provenBy: EVERY_ERROR },
  { id: '2.5 detail', provenBy: EVERY_ERROR },
  {
    id: '2.5 fields',
    provenBy: {
      [BAD_INPUT]: [
        'are told together: every property is wrong',
        'beside the others is refused by name, and nothing is written: "%s"',
      ],
    },
  },
  {
    id: '2.5 requestId',
    provenBy: {
      ...EVERY_ERROR,
      [HEADERS]: [
        'that is fit is kept, in the header and in the body: %s',
        'that is missing or unfit is replaced by a new one: %s',
      ],
    },
  },

  {
    id: '2.6 creation',
    provenBy: {
      [API_KEYS]: [
        'are seen and issued by %s',
        'has the name, the expiry and the permissions it was given',
        'shows its secret once: no later answer has it',
        'is not issued with %s',
      ],
    },
  },

  {
    id: '3.1 stages',
    provenBy: { [READ]: ['a lead is read in its current state: %s, and back to new'] },
  },
  {
    id: '3.2 issuer replaces the key',
    provenBy: {
      [AUTHENTICATION]: ['that is replaced opens nothing from that moment, and the new one everything the old one did'],
    },
  },
  {
    id: '3.2 issuer revokes the key',
    provenBy: { [AUTHENTICATION]: ['that is revoked opens nothing from that moment, for good'] },
  },
  {
    id: '3.2 expiry date passes',
    provenBy: {
      [AUTHENTICATION]: ['opens until its expiry and nothing after it, until it is replaced with a later one'],
    },
  },

  {
    id: '4.1 headers',
    provenBy: {
      [BAD_INPUT]: [
        'that is no UUID with hyphens is refused, and nothing is written: %s',
        'that is given twice is refused, even if both are the same',
        'a media type that is not JSON, or none, is refused: %s',
      ],
      [CREATE]: ['may name its media type as %s'],
      [IDEMPOTENCY]: ['every kind of UUID is a key: %s'],
    },
  },
  {
    id: '4.1 rule 1',
    provenBy: {
      [IDEMPOTENCY]: [
        'gets the original answer, byte by byte, and no second lead',
        'gets it after the lead has become %s',
        'gets it after the source was disabled',
        '100 identical ones all get the same 201, and one lead is written',
      ],
    },
  },
  {
    id: '4.1 rule 2',
    provenBy: {
      [IDEMPOTENCY]: [
        'is refused with 409, and nothing is written or changed: %s',
        '100 with one key and different data, one is created and the others are conflicts',
      ],
    },
  },
  {
    id: '4.1 rule 3',
    provenBy: {
      [ONE_OPEN]: [
        'gets no second one, and the answer links to the one in the way',
        'gets no second one while that is %s',
        'when its lead is %s',
        'is created once by 100 requests at once with keys of their own',
      ],
    },
  },
  {
    id: '4.1 rule 4',
    provenBy: { [CREATE]: ['that is %s is refused, and nothing is written'] },
  },
  {
    id: '4.1 rule 5',
    provenBy: {
      [BAD_INPUT]: [
        'beside the others is refused by name, and nothing is written: "%s"',
        'in the contact is refused by name, and nothing is written: "%s"',
        WRONG_TYPE,
      ],
      [BOUNDS]: [OUTSIDE_BOUNDS],
    },
  },
  {
    id: '4.1 rule 6',
    provenBy: { [QUOTA]: ['every operation is refused with 503 and a time to wait, and nothing is written'] },
  },

  {
    id: '4.2 current state',
    provenBy: { [READ]: ['a lead is read in its current state: %s, and back to new'] },
  },
  {
    id: '4.2 not found',
    provenBy: {
      [READ]: [
        'an unknown id is not found: %s',
        "another studio's lead is answered exactly like an id that nobody has",
      ],
    },
  },
  {
    id: '4.2 path id',
    provenBy: { [READ]: ['that is no UUID is refused: %s'] },
  },

  {
    id: '4.3 limit',
    provenBy: {
      [LIST]: [
        'of %s is kept',
        'that is no whole number from 1 to 100 is refused: %s',
        'comes in pages of 25 unless asked otherwise, newest first',
      ],
    },
  },
  {
    id: '4.3 cursor',
    provenBy: {
      [LIST]: [
        'that the service did not make is refused: %s',
        'is refused when any one character of it is changed, or it is cut anywhere',
        'of another studio is refused',
      ],
    },
  },
  {
    id: '4.3 paging',
    provenBy: {
      [LIST]: [
        'followed to its end by its cursors has every lead once',
        'that ends with a full page has no cursor after it',
      ],
    },
  },

  {
    id: '5.1',
    provenBy: { [AUTHENTICATION]: [NO_WHOLE_KEY, 'the scheme may be written as "%s"'] },
  },
  {
    id: '5.2',
    provenBy: { [AUTHENTICATION]: ["opens its own studio's leads only, whatever the request says of another"] },
  },
  {
    id: '5.3',
    provenBy: { [AUTHENTICATION]: ['that may only read cannot create', 'that may only create cannot read or list'] },
  },
  {
    id: '5.4',
    provenBy: { [API_KEYS]: ['are seen and issued by %s', 'are seen and issued by nobody else: %s'] },
  },
  {
    id: '5.5',
    // The row of the table that sends a cookie and no key.
    provenBy: { [AUTHENTICATION]: [NO_WHOLE_KEY, 'a cookie beside the key makes no difference'] },
  },
  {
    id: '5.6',
    provenBy: {
      [API_KEYS]: [
        'shows its secret once: no later answer has it',
        'has room for one more key when one is revoked, and for none when one is replaced',
      ],
    },
  },
  {
    id: '5.7',
    provenBy: {
      [AUTHENTICATION]: [
        'that is replaced opens nothing from that moment, and the new one everything the old one did',
        'that is revoked opens nothing from that moment, for good',
      ],
    },
  },
  {
    id: '5.8',
    provenBy: {
      [AUTHENTICATION]: [
        NO_WHOLE_KEY,
        'that is revoked opens nothing from that moment, for good',
        'that is replaced opens nothing from that moment, and the new one everything the old one did',
        'opens until its expiry and nothing after it, until it is replaced with a later one',
      ],
    },
  },
  {
    id: '5.9',
    provenBy: { [AUTHENTICATION]: ['that may only read cannot create', 'that may only create cannot read or list'] },
  },
  {
    id: '5.10',
    provenBy: {
      [AUTHENTICATION]: [
        'of an issuer who became staff opens nothing until the issuer may again',
        'of an issuer who was removed opens nothing until another owner or admin replaces it',
      ],
    },
  },
  {
    id: '5.11',
    provenBy: { [AUTHENTICATION]: ['of a suspended studio opens nothing until the studio is active again'] },
  },

  { id: '6 events', reason: 'The contract shows none, and the service has none.' },

  { id: '7 integration_invalid_request', provenBy: EVERY_ERROR },
  { id: '7 integration_source_invalid', provenBy: EVERY_ERROR },
  { id: '7 integration_key_invalid', provenBy: EVERY_ERROR },
  { id: '7 subscription_suspended', provenBy: EVERY_ERROR },
  { id: '7 integration_scope_forbidden', provenBy: EVERY_ERROR },
  { id: '7 integration_issuer_forbidden', provenBy: EVERY_ERROR },
  { id: '7 integration_lead_not_found', provenBy: EVERY_ERROR },
  { id: '7 integration_idempotency_conflict', provenBy: EVERY_ERROR },
  { id: '7 integration_lead_already_open', provenBy: EVERY_ERROR },
  { id: '7 integration_rate_limited', provenBy: EVERY_ERROR },
  {
    id: '7 integration_rate_unavailable',
    provenBy: {
      [QUOTA]: [
        'every operation is refused with 503 and a time to wait, and nothing is written',
        'the key and its scope are still checked first',
      ],
    },
  },
  {
    id: '7 order',
    provenBy: {
      [CHECK_ORDER]: [
        'of two things wrong with a request the earlier one in the order of checks is told, and nothing is written: $names',
      ],
    },
  },
  {
    id: '7 rule 1',
    provenBy: {
      [QUOTA]: [
        'says in whole seconds, at least 1, how long to wait',
        'is repeated to a retry before that time, and the time to wait does not grow',
        'not before, however little of the window was left',
        'sooner for who was refused later: the time to wait is not always the whole window',
        'when the time to wait is over',
      ],
    },
  },
  {
    id: '7 rule 2',
    provenBy: { [ONE_OPEN]: ['gets no second one, and the answer links to the one in the way'] },
  },
  {
    id: '7 rule 3',
    provenBy: { [QUOTA]: ['every operation is refused with 503 and a time to wait, and nothing is written'] },
  },

  {
    id: '8 API keys per studio',
    provenBy: {
      [API_KEYS]: ['has at most 20 keys that are neither revoked nor expired, also when 30 are asked for at once'],
    },
  },
  {
    id: '8 Validity of a new key',
    provenBy: { [API_KEYS]: ['lives for at most 366 days'] },
  },
  {
    id: '8 List page size (limit)',
    provenBy: {
      [LIST]: [
        'of %s is kept',
        'that is no whole number from 1 to 100 is refused: %s',
        'comes in pages of 25 unless asked otherwise, newest first',
      ],
    },
  },
  {
    id: '8 Items in one list page',
    provenBy: { [LIST]: ['followed to its end by its cursors has every lead once'] },
  },
  {
    id: '8 cursor length',
    provenBy: { [LIST]: ['that the service did not make is refused: %s'] },
  },
  { id: '8 displayName length', provenBy: BOUNDED },
  { id: '8 Contact e-mail value length', provenBy: BOUNDED },
  { id: '8 Contact phone value length', provenBy: BOUNDED },
  { id: '8 note length', provenBy: BOUNDED },
  {
    id: '8 requestId length',
    provenBy: {
      [HEADERS]: [
        'that is fit is kept, in the header and in the body: %s',
        'that is missing or unfit is replaced by a new one: %s',
      ],
    },
  },
  {
    id: '8 Retry-After',
    provenBy: { [QUOTA]: ['says in whole seconds, at least 1, how long to wait'] },
  },

  {
    id: '9 version',
    provenBy: { [ROUTES]: ['an operation on a path of its own is not found under another version'] },
  },
];
