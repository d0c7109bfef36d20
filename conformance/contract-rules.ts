/**
 * Every rule of the public contract, in a few words; `docs/reference/contract.md` says each in full. A rule is named by its section, and by
 * its number or by what it is about.
 */
export const CONTRACT_RULES = {
  '1.own-studio': 'A key opens only its own studio; whatever is elsewhere is not found.',
  '1.no-browser': 'Pages in a browser are no callers.',
  '1.media-types': 'What is said is JSON; an error is problem+json.',

  '2.1.id': 'A lead has a UUID.',
  '2.1.displayName': 'A lead has the name that was given, 1 to 160 characters.',
  '2.1.stage': 'A lead stands in one of six stages.',
  '2.1.sourceId': 'A lead has the source that was given, or null.',
  '2.1.note': 'A lead has the note that was given, or null.',
  '2.1.createdAt': 'A lead says in UTC when it was created.',
  '2.1.updatedAt': 'A lead says in UTC when it last changed.',
  '2.1.nothing-else': 'A lead always has all of its fields, and never others.',
  '2.1.no-contact': 'The contact is never answered.',

  '2.2.displayName': 'A new lead must have a name of 1 to 160 characters.',
  '2.2.contact': 'A new lead must have a contact of one of the two shapes, and nothing more in it.',
  '2.2.sourceId': 'A new lead may have a source: a UUID, of the studio, enabled. Null is like none.',
  '2.2.note': 'A new lead may have a note of 1 to 2000 characters. Null is like none.',
  '2.2.email': 'An e-mail address has at most 254 characters.',
  '2.2.phone': 'A phone number has 5 to 64 characters.',
  '2.2.nothing-else': 'What is not in the table is refused.',

  '2.3.lead': 'A lead is answered as the one property of an object.',

  '2.4.leads': 'A list has at most 100 leads, each with exactly the fields of a lead.',
  '2.4.nextCursor':
    'A list has the cursor of the page after it, 1 to 512 of letters, digits, underscore and hyphen, or null.',

  '2.5.type': 'An error has a URI as its type.',
  '2.5.title': 'An error has a title.',
  '2.5.status': "An error repeats the answer's status, 400 to 599.",
  '2.5.code': 'An error has a code in lower case.',
  '2.5.detail': 'The detail of an error, where there is one, says something.',
  '2.5.fields': 'An error may list what is wrong by the name of the field.',
  '2.5.requestId': 'An error has the id of its request, 1 to 128 characters.',

  '2.6.creation': 'Owners and admins make keys, each with a name, an expiry and permissions; the secret is shown once.',

  '3.1.stages': 'A lead stands in one of six stages.',

  '3.2.replaced': 'Replacing a key kills its secret at once.',
  '3.2.revoked': 'Revoking a key kills it for good.',
  '3.2.expired': 'An expired key is refused with 401.',

  '4.1.created': 'A new lead is answered with 201.',
  '4.1.headers': 'Creating takes JSON under an Idempotency-Key that is a UUID with hyphens.',
  '4.1.1': 'The same key with the same data gets the original answer and makes no second lead.',
  '4.1.2': 'The same key with other data is a conflict.',
  '4.1.3': 'A contact with an open lead gets no second one.',
  '4.1.4': 'A source of another studio, or a disabled one, is refused.',
  '4.1.5': 'An unknown field or an invalid contact is refused.',
  '4.1.6': 'While the quota cannot be checked nothing is written, and the answer is 503.',

  '4.2.current-state': 'Reading a lead gives its current state.',
  '4.2.not-found': "An unknown lead and another studio's are not found, alike.",
  '4.2.id': 'The id in the path is a UUID.',

  '4.3.limit': 'A page has 1 to 100 leads, 25 unless asked otherwise.',
  '4.3.cursor': 'A page begins where the cursor says; whatever is no cursor of ours is refused.',
  '4.3.paging': 'The cursor of a page, passed on unchanged, leads to the next; null ends the list.',

  '5.1': 'Every request carries its key as a bearer token.',
  '5.2': 'A key opens the leads of one studio.',
  '5.3': 'Reading and creating are allowed independently of each other.',
  '5.4': 'Only owners and admins see and make keys.',
  '5.5': 'The sign-in cookie is no key.',
  '5.6': 'A secret is shown once; a new key and a revocation make up for a lost one.',
  '5.7': 'Replacing kills the old secret at once; revoking is for good.',
  '5.8': 'A key that is missing, revoked, replaced or expired is refused with 401.',
  '5.9': 'A key without the scope is refused with 403.',
  '5.10': 'A key whose issuer may no longer issue keys is refused with 403.',
  '5.11': 'A key of a suspended studio is refused with 402.',

  '6.events': 'Nothing is said of events.',

  '7.integration_invalid_request': 'Invalid requests are 400.',
  '7.integration_source_invalid': 'Foreign and disabled sources are 400.',
  '7.integration_key_invalid': 'Missing and dead keys are 401.',
  '7.subscription_suspended': 'Suspended studios are 402.',
  '7.integration_scope_forbidden': 'Missing scopes are 403.',
  '7.integration_issuer_forbidden': 'Issuers who may no longer are 403.',
  '7.integration_lead_not_found': 'Leads that are not there are 404.',
  '7.integration_idempotency_conflict': 'Reused keys are 409.',
  '7.integration_lead_already_open': 'Contacts with an open lead are 409.',
  '7.integration_rate_limited': 'Too many requests are 429.',
  '7.integration_rate_unavailable': 'Requests that cannot be counted are 503.',
  '7.1': 'A 429 says in whole seconds, at least 1, how long to wait, and is repeated to who does not.',
  '7.2': 'An open lead in the way is an outcome, not a fault of the service.',
  '7.3': 'What could not be counted was not written, and can be sent again.',

  '8.api-keys': 'A studio has at most 20 keys.',
  '8.key-validity': 'A key lives for at most 366 days.',
  '8.limit': 'A page has 1 to 100 leads, 25 unless asked otherwise.',
  '8.leads': 'A page has at most 100 leads.',
  '8.cursor': 'A cursor has at most 512 characters.',
  '8.displayName': 'A name has 1 to 160 characters.',
  '8.email': 'An e-mail address has at most 254 characters.',
  '8.phone': 'A phone number has 5 to 64 characters.',
  '8.note': 'A note has 1 to 2000 characters.',
  '8.requestId': 'The id of a request has 1 to 128 characters.',
  '8.retry-after': 'The time to wait is a whole number of seconds, at least 1.',

  '9.version': 'Every path begins with /v1.',
} as const;

/** What the contract leaves open and this service has decided, as far as callers see it; in `docs/reference/contract.md` marked °. */
export const DECIDED_RULES = {
  '2.1.version-7': 'A new lead has an id of version 7.',
  '2.2.lengths': 'Lengths count Unicode code points.',
  '2.2.unchanged': 'Text is kept and answered unchanged.',
  '2.2.unicode': 'Half of a surrogate pair, and NUL, are in no text.',
  '2.2.email-form':
    'An e-mail address has one @ with something on both sides, no white space and no control character.',
  '2.2.phone-form': 'A phone number has at least 3 digits, of any script.',
  '2.2.uuids': 'A UUID may come in any letter case and is answered in lower case.',
  '2.5.page': 'The type of an error leads to the page of its code.',
  '2.5.together': 'All faults of header and body are told together, each by its name, at most 50.',
  '2.5.discreet': 'An error tells nothing of what is inside the service, and no text that was sent.',

  '3.1.initial': 'A new lead is new.',
  '3.1.open': 'A lead is open unless it is won or lost.',
  '3.1.moves':
    'The CRM moves a lead from any stage to any other, which sets updatedAt; to reopen it, its contact must be free.',
  '3.2.renewed':
    'A replaced key keeps what it allows; who replaces it becomes its issuer; an expired one needs another expiry.',

  '4.1.replayed': 'A repetition says so: Idempotent-Replayed: true.',
  '4.1.original': 'The answer to a repetition is the original one, whatever became of the lead since.',
  '4.1.same-data':
    'The same data means the same values as typed, whatever the order of properties; null is like nothing.',
  '4.1.memory': 'A key is remembered in its studio, as long as its lead exists.',
  '4.1.success': 'Only a success binds a key.',
  '4.1.at-once': 'Equal requests at the same time all get the 201.',
  '4.1.same-contact': 'When two contacts are the same: by letter case, by number and extension, else by text.',
  '4.1.existing-lead': 'Who may read is told which lead is in the way.',
  '4.1.body': 'A body is strict JSON in UTF-8, of at most 32 KiB, not packed.',
  '4.2.ignored': 'A body, a media type and parameters that are not known make no difference to a read.',
  '4.3.newest-first': 'A list is newest first.',
  '4.3.steady': 'What is created or changed meanwhile shifts no page.',
  '4.3.parameters': 'limit and cursor are given once and not empty; others are ignored.',
  '4.3.own-cursor': 'A cursor works with any limit and key of its studio, and in no other studio.',

  '5.header': 'The scheme may be in any letter case; the header is given once.',

  '7.route_not_found': 'Where nothing is, is 404, without a key; a slash at the end is another path.',
  '7.method_not_allowed': 'What a path does not support is 405 with Allow, without a key; HEAD too.',
  '7.internal_error': 'A fault inside is 500.',
  '7.integration_unavailable': 'A service that cannot answer, or does not know the outcome, is 503.',
  '7.order': 'Of several things wrong one is told, always in the same order.',
  '7.overload': 'Too many requests are turned away before anything is done for them.',
  '7.unknown-outcome':
    'After 500 and integration_unavailable, the same request under the same key finds the lead or makes it.',
  '7.wait': 'Every 503 has a Retry-After.',
  '7.no-http': 'What is no valid HTTP, is too long or never becomes whole is integration_invalid_request.',
  '7.request-id': "Every answer has an X-Request-Id: the caller's where it is fit.",
  '7.no-store': 'No answer may be kept in a cache.',
  '7.www-authenticate': 'A 401 says how to authenticate.',

  '8.quota': 'A key has so many requests in a window that begins with its first, all operations together.',
  '8.counted': 'What the quota refuses, or a check before it, is not counted; everything else is, repetitions too.',
  '8.quota-headers': 'A counted request is told how many are left, and for how long.',

  '9.frozen': 'Fields of leads, stages and codes of /v1 stay as they are; what is added is added in headers.',

  '10.openapi': 'The OpenAPI document is served to everybody.',
  '10.docs': 'The documentation is served to everybody.',
  '10.health': 'Whether the gateway lives, and is ready, is told to everybody.',
} as const;

/** All of them. */
export const RULES = { ...CONTRACT_RULES, ...DECIDED_RULES };

/** The name of a rule. */
export type RuleId = keyof typeof RULES;

const sectionOf = (rule: RuleId): string => rule.slice(0, rule.lastIndexOf('.'));

/** The names of all, section by section; in each, what was decided comes last. */
export const RULE_IDS: readonly RuleId[] = (Object.keys(RULES) as RuleId[]).sort((a, b) =>
  sectionOf(a).localeCompare(sectionOf(b), 'en', { numeric: true }),
);
