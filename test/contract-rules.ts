/** A rule of the public contract, in our words, and what proves it. */
export interface ContractRule {
  /** The section, then the rule's number or the name that its row begins with. */
  readonly id: string;
  readonly rule: string;
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

/** Every rule of the contract. Rules that it does not number, and has in no table, go by what they are about. */
export const CONTRACT_RULES: readonly ContractRule[] = [
  {
    id: '1 own studio',
    rule: 'A key opens only its own studio; whatever is elsewhere is not found.',
    provenBy: { [AUTHENTICATION]: ["opens its own studio's leads only, whatever the request says of another"] },
  },
  {
    id: '1 no browser',
    rule: 'Pages in a browser are no callers.',
    provenBy: { [HEADERS]: ['no answer has a CORS header: %s', 'a preflight is answered without a CORS header'] },
  },

  {
    id: '2.1 id',
    rule: 'A lead has a UUID.',
    provenBy: { [CREATE]: [...EXACT_LEAD, 'starts as new, unchanged since it was created, under a version 7 id'] },
  },
  {
    id: '2.1 displayName',
    rule: 'A lead has the name that was given, 1 to 160 characters.',
    provenBy: { [CREATE]: [...EXACT_LEAD, 'comes back with its texts unchanged: %s'], [BOUNDS]: [WITHIN_BOUNDS] },
  },
  {
    id: '2.1 stage',
    rule: 'A lead stands in one of six stages.',
    provenBy: { [READ]: ['a lead is read in its current state: %s, and back to new'] },
  },
  {
    id: '2.1 sourceId',
    rule: 'A lead has the source that was given, or null.',
    provenBy: { [CREATE]: [...EXACT_LEAD, 'has null for the source and the note that were not given'] },
  },
  {
    id: '2.1 note',
    rule: 'A lead has the note that was given, or null.',
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
    rule: 'A lead says in UTC when it was created.',
    provenBy: { [CREATE]: [...EXACT_LEAD, 'starts as new, unchanged since it was created, under a version 7 id'] },
  },
  {
    id: '2.1 updatedAt',
    rule: 'A lead says in UTC when it last changed.',
    provenBy: {
      [CREATE]: EXACT_LEAD,
      [READ]: ['a lead is read in its current state: %s, and back to new'],
    },
  },
  {
    id: '2.1 no contact',
    rule: 'The contact is never answered.',
    provenBy: { [CREATE]: ['keeps its contact as it was typed and never answers it: %s'] },
  },

  {
    id: '2.2 displayName',
    rule: 'A new lead must have a name of 1 to 160 characters.',
    provenBy: { ...BOUNDED, [BAD_INPUT]: [WRONG_TYPE] },
  },
  {
    id: '2.2 contact',
    rule: 'A new lead must have a contact of one of the two shapes, and nothing more in it.',
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
    rule: 'A new lead may have a source: a UUID, of the studio, enabled. Null is like none.',
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
    rule: 'A new lead may have a note of 1 to 2000 characters. Null is like none.',
    provenBy: {
      ...BOUNDED,
      [BAD_INPUT]: [WRONG_TYPE],
      [CREATE]: ['has null for the source and the note that were not given'],
    },
  },
  { id: '2.2 email', rule: 'An e-mail address has at most 254 characters.', provenBy: BOUNDED },
  { id: '2.2 phone', rule: 'A phone number has 5 to 64 characters.', provenBy: BOUNDED },
  {
    id: '2.2 unknown properties',
    rule: 'What is not in the table is refused.',
    provenBy: {
      [BAD_INPUT]: [
        'beside the others is refused by name, and nothing is written: "%s"',
        'that looks like a prototype lends nothing to what is missing',
      ],
    },
  },

  { id: '2.3 lead', rule: 'A lead is answered as the one property of an object.', provenBy: { [CREATE]: EXACT_LEAD } },

  {
    id: '2.4 leads',
    rule: 'A list has at most 100 leads, each with exactly the fields of a lead.',
    provenBy: {
      [LIST]: [
        'followed to its end by its cursors has every lead once',
        'has each lead as it would be read alone, in its current state',
      ],
    },
  },
  {
    id: '2.4 nextCursor',
    rule: 'A list has the cursor of the page after it, 1 to 512 of letters, digits, underscore and hyphen, or null.',
    provenBy: {
      [LIST]: ['followed to its end by its cursors has every lead once', 'of a studio without leads is one empty page'],
    },
  },

  { id: '2.5 type', rule: 'An error has a URI as its type.', provenBy: EVERY_ERROR },
  { id: '2.5 title', rule: 'An error has a title.', provenBy: EVERY_ERROR },
  { id: '2.5 status', rule: "An error repeats the answer's status, 400 to 599.", provenBy: EVERY_ERROR },
  { id: '2.5 code', rule: 'An error has a code in lower case.', provenBy: EVERY_ERROR },
  { id: '2.5 detail', rule: 'The detail of an error, where there is one, says something.', provenBy: EVERY_ERROR },
  {
    id: '2.5 fields',
    rule: 'An error may list what is wrong by the name of the field.',
    provenBy: {
      [BAD_INPUT]: [
        'are told together: every property is wrong',
        'beside the others is refused by name, and nothing is written: "%s"',
      ],
    },
  },
  {
    id: '2.5 requestId',
    rule: 'An error has the id of its request, 1 to 128 characters.',
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
    rule: 'Owners and admins make keys, each with a name, an expiry and permissions; the secret is shown once.',
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
    rule: 'A lead stands in one of six stages.',
    provenBy: { [READ]: ['a lead is read in its current state: %s, and back to new'] },
  },
  {
    id: '3.2 issuer replaces the key',
    rule: 'Replacing a key kills its secret at once.',
    provenBy: {
      [AUTHENTICATION]: ['that is replaced opens nothing from that moment, and the new one everything the old one did'],
    },
  },
  {
    id: '3.2 issuer revokes the key',
    rule: 'Revoking a key kills it for good.',
    provenBy: { [AUTHENTICATION]: ['that is revoked opens nothing from that moment, for good'] },
  },
  {
    id: '3.2 expiry date passes',
    rule: 'An expired key is refused with 401.',
    provenBy: {
      [AUTHENTICATION]: ['opens until its expiry and nothing after it, until it is replaced with a later one'],
    },
  },

  {
    id: '4.1 headers',
    rule: 'Creating takes JSON under an Idempotency-Key that is a UUID with hyphens.',
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
    rule: 'The same key with the same data gets the original answer and makes no second lead.',
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
    rule: 'The same key with other data is a conflict.',
    provenBy: {
      [IDEMPOTENCY]: [
        'is refused with 409, and nothing is written or changed: %s',
        '100 with one key and different data, one is created and the others are conflicts',
      ],
    },
  },
  {
    id: '4.1 rule 3',
    rule: 'A contact with an open lead gets no second one.',
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
    rule: 'A source of another studio, or a disabled one, is refused.',
    provenBy: { [CREATE]: ['that is %s is refused, and nothing is written'] },
  },
  {
    id: '4.1 rule 5',
    rule: 'An unknown field or an invalid contact is refused.',
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
    rule: 'While the quota cannot be checked nothing is written, and the answer is 503.',
    provenBy: { [QUOTA]: ['every operation is refused with 503 and a time to wait, and nothing is written'] },
  },

  {
    id: '4.2 current state',
    rule: 'Reading a lead gives its current state.',
    provenBy: { [READ]: ['a lead is read in its current state: %s, and back to new'] },
  },
  {
    id: '4.2 not found',
    rule: "An unknown lead and another studio's are not found, alike.",
    provenBy: {
      [READ]: [
        'an unknown id is not found: %s',
        "another studio's lead is answered exactly like an id that nobody has",
      ],
    },
  },
  {
    id: '4.2 path id',
    rule: 'The id in the path is a UUID.',
    provenBy: { [READ]: ['that is no UUID is refused: %s'] },
  },

  {
    id: '4.3 limit',
    rule: 'A page has 1 to 100 leads, 25 unless asked otherwise.',
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
    rule: 'A page begins where the cursor says; whatever is no cursor of ours is refused.',
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
    rule: 'The cursor of a page, passed on unchanged, leads to the next; null ends the list.',
    provenBy: {
      [LIST]: [
        'followed to its end by its cursors has every lead once',
        'that ends with a full page has no cursor after it',
      ],
    },
  },

  {
    id: '5.1',
    rule: 'Every request carries its key as a bearer token.',
    provenBy: { [AUTHENTICATION]: [NO_WHOLE_KEY, 'the scheme may be written as "%s"'] },
  },
  {
    id: '5.2',
    rule: 'A key opens the leads of one studio.',
    provenBy: { [AUTHENTICATION]: ["opens its own studio's leads only, whatever the request says of another"] },
  },
  {
    id: '5.3',
    rule: 'Reading and creating are allowed independently of each other.',
    provenBy: { [AUTHENTICATION]: ['that may only read cannot create', 'that may only create cannot read or list'] },
  },
  {
    id: '5.4',
    rule: 'Only owners and admins see and make keys.',
    provenBy: { [API_KEYS]: ['are seen and issued by %s', 'are seen and issued by nobody else: %s'] },
  },
  {
    id: '5.5',
    rule: 'The sign-in cookie is no key.',
    // The row of the table that sends a cookie and no key.
    provenBy: { [AUTHENTICATION]: [NO_WHOLE_KEY, 'a cookie beside the key makes no difference'] },
  },
  {
    id: '5.6',
    rule: 'A secret is shown once; a new key and a revocation make up for a lost one.',
    provenBy: {
      [API_KEYS]: [
        'shows its secret once: no later answer has it',
        'has room for one more key when one is revoked, and for none when one is replaced',
      ],
    },
  },
  {
    id: '5.7',
    rule: 'Replacing kills the old secret at once; revoking is for good.',
    provenBy: {
      [AUTHENTICATION]: [
        'that is replaced opens nothing from that moment, and the new one everything the old one did',
        'that is revoked opens nothing from that moment, for good',
      ],
    },
  },
  {
    id: '5.8',
    rule: 'A key that is missing, revoked, replaced or expired is refused with 401.',
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
    rule: 'A key without the scope is refused with 403.',
    provenBy: { [AUTHENTICATION]: ['that may only read cannot create', 'that may only create cannot read or list'] },
  },
  {
    id: '5.10',
    rule: 'A key whose issuer may no longer issue keys is refused with 403.',
    provenBy: {
      [AUTHENTICATION]: [
        'of an issuer who became staff opens nothing until the issuer may again',
        'of an issuer who was removed opens nothing until another owner or admin replaces it',
      ],
    },
  },
  {
    id: '5.11',
    rule: 'A key of a suspended studio is refused with 402.',
    provenBy: { [AUTHENTICATION]: ['of a suspended studio opens nothing until the studio is active again'] },
  },

  { id: '6 events', rule: 'Nothing is said of events.', reason: 'The contract shows none, and the service has none.' },

  { id: '7 integration_invalid_request', rule: 'Invalid requests are 400.', provenBy: EVERY_ERROR },
  { id: '7 integration_source_invalid', rule: 'Foreign and disabled sources are 400.', provenBy: EVERY_ERROR },
  { id: '7 integration_key_invalid', rule: 'Missing and dead keys are 401.', provenBy: EVERY_ERROR },
  { id: '7 subscription_suspended', rule: 'Suspended studios are 402.', provenBy: EVERY_ERROR },
  { id: '7 integration_scope_forbidden', rule: 'Missing scopes are 403.', provenBy: EVERY_ERROR },
  { id: '7 integration_issuer_forbidden', rule: 'Issuers who may no longer are 403.', provenBy: EVERY_ERROR },
  { id: '7 integration_lead_not_found', rule: 'Leads that are not there are 404.', provenBy: EVERY_ERROR },
  { id: '7 integration_idempotency_conflict', rule: 'Reused keys are 409.', provenBy: EVERY_ERROR },
  { id: '7 integration_lead_already_open', rule: 'Contacts with an open lead are 409.', provenBy: EVERY_ERROR },
  { id: '7 integration_rate_limited', rule: 'Too many requests are 429.', provenBy: EVERY_ERROR },
  {
    id: '7 integration_rate_unavailable',
    rule: 'Requests that cannot be counted are 503.',
    provenBy: {
      [QUOTA]: [
        'every operation is refused with 503 and a time to wait, and nothing is written',
        'the key and its scope are still checked first',
      ],
    },
  },
  {
    id: '7 order',
    rule: 'Of several things wrong one is told, always in the same order.',
    provenBy: {
      [CHECK_ORDER]: [
        'of two things wrong with a request the earlier one in the order of checks is told, and nothing is written: $names',
      ],
    },
  },
  {
    id: '7 rule 1',
    rule: 'A 429 says in whole seconds, at least 1, how long to wait, and is repeated to who does not.',
    provenBy: {
      [QUOTA]: [
        'says in whole seconds, at least 1, how long to wait',
        'is repeated to a retry before that time, and the time to wait does not grow',
        'when the time to wait is over',
      ],
    },
  },
  {
    id: '7 rule 2',
    rule: 'An open lead in the way is an outcome, not a fault of the service.',
    provenBy: { [ONE_OPEN]: ['gets no second one, and the answer links to the one in the way'] },
  },
  {
    id: '7 rule 3',
    rule: 'What could not be counted was not written, and can be sent again.',
    provenBy: { [QUOTA]: ['every operation is refused with 503 and a time to wait, and nothing is written'] },
  },

  {
    id: '8 API keys per studio',
    rule: 'A studio has at most 20 keys.',
    provenBy: {
      [API_KEYS]: ['has at most 20 keys that are neither revoked nor expired, also when 30 are asked for at once'],
    },
  },
  {
    id: '8 Validity of a new key',
    rule: 'A key lives for at most 366 days.',
    provenBy: { [API_KEYS]: ['lives for at most 366 days'] },
  },
  {
    id: '8 List page size (limit)',
    rule: 'A page has 1 to 100 leads, 25 unless asked otherwise.',
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
    rule: 'A page has at most 100 leads.',
    provenBy: { [LIST]: ['followed to its end by its cursors has every lead once'] },
  },
  {
    id: '8 cursor length',
    rule: 'A cursor has at most 512 characters.',
    provenBy: { [LIST]: ['that the service did not make is refused: %s'] },
  },
  { id: '8 displayName length', rule: 'A name has 1 to 160 characters.', provenBy: BOUNDED },
  { id: '8 Contact e-mail value length', rule: 'An e-mail address has at most 254 characters.', provenBy: BOUNDED },
  { id: '8 Contact phone value length', rule: 'A phone number has 5 to 64 characters.', provenBy: BOUNDED },
  { id: '8 note length', rule: 'A note has 1 to 2000 characters.', provenBy: BOUNDED },
  {
    id: '8 requestId length',
    rule: 'The id of a request has 1 to 128 characters.',
    provenBy: {
      [HEADERS]: [
        'that is fit is kept, in the header and in the body: %s',
        'that is missing or unfit is replaced by a new one: %s',
      ],
    },
  },
  {
    id: '8 Retry-After',
    rule: 'The time to wait is a whole number of seconds, at least 1.',
    provenBy: { [QUOTA]: ['says in whole seconds, at least 1, how long to wait'] },
  },

  {
    id: '9 version',
    rule: 'Every path begins with /v1.',
    provenBy: { [ROUTES]: ['an operation on a path of its own is not found under another version'] },
  },
];
