import type { ProblemCode } from '../gateway/problems.ts';

/**
 * A summary of each rule of the public contract. `docs/reference/contract.md` has the full text. A rule's id is its section plus its number
 * or subject.
 */
export const CONTRACT_RULES = {
  '1.own-studio': 'A key gives access only to its own studio; anything in another studio is not found.',
  '1.no-browser': 'Pages in a browser cannot call the API.',
  '1.media-types': 'Bodies are JSON; errors are problem+json.',

  '2.1.id': 'A lead has a UUID.',
  '2.1.displayName': 'A lead has the given name, 1 to 160 characters.',
  '2.1.stage': 'A lead has one of six stages.',
  '2.1.sourceId': 'A lead has the given source, or null.',
  '2.1.note': 'A lead has the given note, or null.',
  '2.1.createdAt': 'A lead has the time of its creation, in UTC.',
  '2.1.updatedAt': 'A lead has the time of its last change, in UTC.',
  '2.1.nothing-else': 'A lead always has all of its fields, and no others.',
  '2.1.no-contact': 'The contact is never returned.',

  '2.2.displayName': 'A new lead must have a name of 1 to 160 characters.',
  '2.2.contact': 'A new lead must have a contact of one of the two shapes, without other properties.',
  '2.2.sourceId': 'A new lead may have a source: the UUID of an enabled source of the studio. Null means none.',
  '2.2.note': 'A new lead may have a note of 1 to 2000 characters. Null means none.',
  '2.2.email': 'An email address has at most 254 characters.',
  '2.2.phone': 'A phone number has 5 to 64 characters.',
  '2.2.nothing-else': 'A property that is not in the table is refused.',

  '2.3.lead': 'A response with a lead is an object with the one property lead.',

  '2.4.leads': 'A list has at most 100 leads, each with exactly the fields of a lead.',
  '2.4.nextCursor':
    'A list has the cursor of the page after it, 1 to 512 of letters, digits, underscore and hyphen, or null.',

  '2.5.type': 'An error has a URI as its type.',
  '2.5.title': 'An error has a title.',
  '2.5.status': 'An error repeats the status of the response, 400 to 599.',
  '2.5.code': 'An error has a code in lower case.',
  '2.5.detail': 'The detail of an error, if there is one, is not empty.',
  '2.5.fields': 'An error may list the faults by field name.',
  '2.5.requestId': 'An error has the id of its request, 1 to 128 characters.',

  '2.6.creation': 'Owners and admins create keys with a name, an expiry and permissions; the secret is shown once.',

  '3.1.stages': 'A lead has one of six stages.',

  '3.2.replaced': 'Replacing a key invalidates its old secret immediately.',
  '3.2.revoked': 'Revoking a key invalidates it permanently.',
  '3.2.expired': 'An expired key is refused with 401.',

  '4.1.created': 'A creation returns 201.',
  '4.1.headers': 'A creation has a JSON body and an Idempotency-Key, a UUID with hyphens.',
  '4.1.1': 'The same key with the same data gets the original response and creates no second lead.',
  '4.1.2': 'The same key with other data is a conflict.',
  '4.1.3': 'A contact with an open lead gets no second lead.',
  '4.1.4': 'A source of another studio, or a disabled one, is refused.',
  '4.1.5': 'An unknown field or an invalid contact is refused.',
  '4.1.6': 'While the quota cannot be checked, requests get 503 and nothing is written.',

  '4.2.current-state': 'Reading a lead returns its current state.',
  '4.2.not-found': "An unknown lead and another studio's lead get the same 404.",
  '4.2.id': 'The id in the path is a UUID.',

  '4.3.limit': 'A page has 1 to 100 leads, 25 by default.',
  '4.3.cursor': 'A page begins at its cursor; an invalid cursor is refused.',
  '4.3.paging': 'The cursor of a page, passed unchanged, returns the next page; null ends the list.',

  '5.1': 'Every request carries its key as a bearer token.',
  '5.2': 'A key gives access to the leads of one studio.',
  '5.3': 'Reading and creating are separate permissions.',
  '5.4': 'Only owners and admins see and create keys.',
  '5.5': 'The sign-in cookie is not accepted as a key.',
  '5.6': 'A secret is shown once; a lost key is revoked and replaced by a new one.',
  '5.7': 'Replacing invalidates the old secret immediately; revoking is permanent.',
  '5.8': 'A key that is missing, revoked, replaced or expired is refused with 401.',
  '5.9': 'A key without the scope is refused with 403.',
  '5.10': 'A key whose issuer may no longer issue keys is refused with 403.',
  '5.11': 'A key of a suspended studio is refused with 402.',

  '6.events': 'The contract has no events.',

  '7.integration_invalid_request': 'Invalid requests are 400.',
  '7.integration_source_invalid': 'Foreign and disabled sources are 400.',
  '7.integration_key_invalid': 'Missing and invalid keys are 401.',
  '7.subscription_suspended': 'Suspended studios are 402.',
  '7.integration_scope_forbidden': 'Missing scopes are 403.',
  '7.integration_issuer_forbidden': 'Keys of issuers without permission are 403.',
  '7.integration_lead_not_found': 'Unknown leads are 404.',
  '7.integration_idempotency_conflict': 'Idempotency keys reused with other data are 409.',
  '7.integration_lead_already_open': 'Contacts with an open lead are 409.',
  '7.integration_rate_limited': 'Too many requests are 429.',
  '7.integration_rate_unavailable': 'Requests that cannot be counted are 503.',
  '7.1': 'A 429 has the time to wait, in whole seconds, at least 1; earlier requests get it again.',
  '7.2': 'A contact with an open lead is a normal outcome, not a fault of the service.',
  '7.3': 'A request that could not be counted wrote nothing, and may be repeated.',

  '8.api-keys': 'A studio has at most 20 keys.',
  '8.key-validity': 'A key is valid for at most 366 days.',
  '8.limit': 'A page has 1 to 100 leads, 25 by default.',
  '8.leads': 'A page has at most 100 leads.',
  '8.cursor': 'A cursor has at most 512 characters.',
  '8.displayName': 'A name has 1 to 160 characters.',
  '8.email': 'An email address has at most 254 characters.',
  '8.phone': 'A phone number has 5 to 64 characters.',
  '8.note': 'A note has 1 to 2000 characters.',
  '8.requestId': 'The id of a request has 1 to 128 characters.',
  '8.retry-after': 'The time to wait is a whole number of seconds, at least 1.',

  '9.version': 'Every path begins with /v1.',
} as const;

/** This service's own rules, which callers see and the contract leaves open. `docs/reference/contract.md` marks them °. */
export const DECIDED_RULES = {
  '2.1.version-7': 'A new lead has a UUID of version 7.',
  '2.2.lengths': 'Lengths count Unicode code points.',
  '2.2.unchanged': 'Text is stored and returned unchanged.',
  '2.2.unicode': 'Text has no lone surrogates and no NUL.',
  '2.2.email-form': 'An email address has one @ with text on both sides, no white space and no control characters.',
  '2.2.phone-form': 'A phone number has at least 3 digits, of any script.',
  '2.2.uuids': 'A UUID is accepted in any letter case and returned in lower case.',
  '2.5.page': 'The type of an error is the address of the page of its code.',
  '2.5.together': 'All faults of header and body are reported together, by field, at most 50.',
  '2.5.discreet': 'An error reveals no internals, and repeats no text of the request.',

  '3.1.initial': 'A new lead has the stage new.',
  '3.1.open': 'A lead is open unless it is won or lost.',
  '3.1.moves':
    'The CRM moves a lead from any stage to any other, which sets updatedAt; to reopen it, its contact must be free.',
  '3.2.renewed':
    'A replaced key keeps its permissions; the member who replaces it becomes its issuer; an expired key needs a new expiry.',

  '4.1.replayed': 'The response to a repetition has Idempotent-Replayed: true.',
  '4.1.original': 'A repetition gets the original response, even if the lead has changed since.',
  '4.1.same-data': 'The same data means the same values, in any order of properties; null equals a missing property.',
  '4.1.memory': 'An Idempotency-Key is remembered in its studio as long as its lead exists.',
  '4.1.success': 'Only a success uses up an Idempotency-Key.',
  '4.1.enquiry': 'The data of a creation that an open lead blocks is stored with that lead; no response shows it.',
  '4.1.at-once': 'Equal concurrent requests all get the 201.',
  '4.1.same-contact':
    'Contacts are the same by their address in any spelling, or by their number or its digits, and its extension.',
  '4.1.existing-lead': 'A key that may read gets the id of the open lead.',
  '4.1.body': 'A body is strict JSON in UTF-8, of at most 32 KiB, not compressed.',
  '4.2.ignored': 'A read ignores a body, a media type and unknown parameters.',
  '4.3.newest-first': 'A list is newest first.',
  '4.3.steady': 'Leads that are created or changed meanwhile shift no page.',
  '4.3.parameters': 'limit and cursor are given once and not empty; other parameters are ignored.',
  '4.3.own-cursor': 'A cursor works with any limit and any key of its studio, and in no other studio.',

  '5.header': 'The authentication scheme is accepted in any letter case; the header is given once.',

  '7.route_not_found': 'An unknown path is 404, even without a key; a trailing slash is another path.',
  '7.method_not_allowed':
    'An unsupported method is 405 with Allow, even without a key; HEAD is supported for the documentation only.',
  '7.internal_error': 'An internal fault is 500.',
  '7.integration_unavailable': 'When the service cannot serve a request, or does not know its outcome, it returns 503.',
  '7.order': 'The first of several faults is reported, in a fixed order.',
  '7.overload': 'Under overload, requests are refused before any work is done for them.',
  '7.unknown-outcome':
    'After 500 and integration_unavailable, the same request with the same key returns the lead or creates it.',
  '7.wait': 'Every 503 has a Retry-After.',
  '7.no-http': 'Invalid, oversized and incomplete HTTP is integration_invalid_request.',
  '7.request-id': "Every response has an X-Request-Id: the caller's if it is valid.",
  '7.no-store': 'No response may be cached.',
  '7.www-authenticate': 'A 401 names the authentication scheme.',

  '8.quota':
    'A key has a number of requests per window, for all operations together; its first request begins the window.',
  '8.counted':
    'Requests that the quota or an earlier check refuses are not counted; all others are, including repetitions.',
  '8.quota-headers':
    'The response to a counted request has the number of requests left, and the time to the end of the window.',

  '9.frozen': 'The fields of leads, the stages and the codes of /v1 are frozen; additions are made in headers.',

  '10.openapi': 'The OpenAPI document is public.',
  '10.docs': 'The documentation is public.',
  '10.health': 'Liveness and readiness of the gateway are public.',
} as const;

export const RULES = { ...CONTRACT_RULES, ...DECIDED_RULES } satisfies Readonly<Record<`7.${ProblemCode}`, string>>;

export type RuleId = keyof typeof RULES;

const toSection = (rule: RuleId): string => rule.slice(0, rule.lastIndexOf('.'));

/** All rules by section. Within a section, this service's own rules come last. */
export const RULE_IDS: readonly RuleId[] = (Object.keys(RULES) as RuleId[]).sort((a, b) =>
  toSection(a).localeCompare(toSection(b), 'en', { numeric: true }),
);
