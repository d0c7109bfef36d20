/**
 * Every rule of the public contract, in our words. Rules that it does not number, and has in no table, go by what they are
 * about.
 */
export const CONTRACT_RULES = {
  '1 own studio': 'A key opens only its own studio; whatever is elsewhere is not found.',
  '1 no browser': 'Pages in a browser are no callers.',

  '2.1 id': 'A lead has a UUID.',
  '2.1 displayName': 'A lead has the name that was given, 1 to 160 characters.',
  '2.1 stage': 'A lead stands in one of six stages.',
  '2.1 sourceId': 'A lead has the source that was given, or null.',
  '2.1 note': 'A lead has the note that was given, or null.',
  '2.1 createdAt': 'A lead says in UTC when it was created.',
  '2.1 updatedAt': 'A lead says in UTC when it last changed.',
  '2.1 no contact': 'The contact is never answered.',

  '2.2 displayName': 'A new lead must have a name of 1 to 160 characters.',
  '2.2 contact': 'A new lead must have a contact of one of the two shapes, and nothing more in it.',
  '2.2 sourceId': 'A new lead may have a source: a UUID, of the studio, enabled. Null is like none.',
  '2.2 note': 'A new lead may have a note of 1 to 2000 characters. Null is like none.',
  '2.2 email': 'An e-mail address has at most 254 characters.',
  '2.2 phone': 'A phone number has 5 to 64 characters.',
  '2.2 unknown properties': 'What is not in the table is refused.',

  '2.3 lead': 'A lead is answered as the one property of an object.',

  '2.4 leads': 'A list has at most 100 leads, each with exactly the fields of a lead.',
  '2.4 nextCursor':
    'A list has the cursor of the page after it, 1 to 512 of letters, digits, underscore and hyphen, or null.',

  '2.5 type': 'An error has a URI as its type.',
  '2.5 title': 'An error has a title.',
  '2.5 status': "An error repeats the answer's status, 400 to 599.",
  '2.5 code': 'An error has a code in lower case.',
  '2.5 detail': 'The detail of an error, where there is one, says something.',
  '2.5 fields': 'An error may list what is wrong by the name of the field.',
  '2.5 requestId': 'An error has the id of its request, 1 to 128 characters.',

  '2.6 creation': 'Owners and admins make keys, each with a name, an expiry and permissions; the secret is shown once.',

  '3.1 stages': 'A lead stands in one of six stages.',

  '3.2 issuer replaces the key': 'Replacing a key kills its secret at once.',
  '3.2 issuer revokes the key': 'Revoking a key kills it for good.',
  '3.2 expiry date passes': 'An expired key is refused with 401.',

  '4.1 headers': 'Creating takes JSON under an Idempotency-Key that is a UUID with hyphens.',
  '4.1 rule 1': 'The same key with the same data gets the original answer and makes no second lead.',
  '4.1 rule 2': 'The same key with other data is a conflict.',
  '4.1 rule 3': 'A contact with an open lead gets no second one.',
  '4.1 rule 4': 'A source of another studio, or a disabled one, is refused.',
  '4.1 rule 5': 'An unknown field or an invalid contact is refused.',
  '4.1 rule 6': 'While the quota cannot be checked nothing is written, and the answer is 503.',

  '4.2 current state': 'Reading a lead gives its current state.',
  '4.2 not found': "An unknown lead and another studio's are not found, alike.",
  '4.2 path id': 'The id in the path is a UUID.',

  '4.3 limit': 'A page has 1 to 100 leads, 25 unless asked otherwise.',
  '4.3 cursor': 'A page begins where the cursor says; whatever is no cursor of ours is refused.',
  '4.3 paging': 'The cursor of a page, passed on unchanged, leads to the next; null ends the list.',

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

  '6 events': 'Nothing is said of events.',

  '7 integration_invalid_request': 'Invalid requests are 400.',
  '7 integration_source_invalid': 'Foreign and disabled sources are 400.',
  '7 integration_key_invalid': 'Missing and dead keys are 401.',
  '7 subscription_suspended': 'Suspended studios are 402.',
  '7 integration_scope_forbidden': 'Missing scopes are 403.',
  '7 integration_issuer_forbidden': 'Issuers who may no longer are 403.',
  '7 integration_lead_not_found': 'Leads that are not there are 404.',
  '7 integration_idempotency_conflict': 'Reused keys are 409.',
  '7 integration_lead_already_open': 'Contacts with an open lead are 409.',
  '7 integration_rate_limited': 'Too many requests are 429.',
  '7 integration_rate_unavailable': 'Requests that cannot be counted are 503.',
  '7 order': 'Of several things wrong one is told, always in the same order.',
  '7 rule 1': 'A 429 says in whole seconds, at least 1, how long to wait, and is repeated to who does not.',
  '7 rule 2': 'An open lead in the way is an outcome, not a fault of the service.',
  '7 rule 3': 'What could not be counted was not written, and can be sent again.',

  '8 API keys per studio': 'A studio has at most 20 keys.',
  '8 Validity of a new key': 'A key lives for at most 366 days.',
  '8 List page size (limit)': 'A page has 1 to 100 leads, 25 unless asked otherwise.',
  '8 Items in one list page': 'A page has at most 100 leads.',
  '8 cursor length': 'A cursor has at most 512 characters.',
  '8 displayName length': 'A name has 1 to 160 characters.',
  '8 Contact e-mail value length': 'An e-mail address has at most 254 characters.',
  '8 Contact phone value length': 'A phone number has 5 to 64 characters.',
  '8 note length': 'A note has 1 to 2000 characters.',
  '8 requestId length': 'The id of a request has 1 to 128 characters.',
  '8 Retry-After': 'The time to wait is a whole number of seconds, at least 1.',

  '9 version': 'Every path begins with /v1.',
} as const;

/** The section, then the rule's number or the name that its row begins with. */
export type RuleId = keyof typeof CONTRACT_RULES;
