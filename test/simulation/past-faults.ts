import type { Patch } from '../planted-bugs/patch.ts';

/** A fault that release 1.1 or 1.2 had, planted again: lives must find it. */
export interface PastFault {
  readonly name: string;
  readonly patches: readonly Patch[];
}

const fault = (name: string, file: string, find: string, put = ''): PastFault => ({
  name,
  patches: [{ file, find, put }],
});

/** A method whose request is not known again when it is repeated. */
const repeated = (what: string, file: string, values: string): PastFault =>
  fault(
    `${what} that is repeated takes effect again`,
    `src/usecases/${file}.ts`,
    `requestIdentity(${values})`,
    '(undefined as string | undefined)',
  );

const CONTACT = 'src/domain/contact.ts';
const RETRIES = 'sdk/outbox/retries.ts';
const REDIS = 'gateway/admission/quota/redis-window.ts';

/** Those that are no planted bugs of the suites as well, in the order of what they are about. */
export const PAST_FAULTS: readonly PastFault[] = [
  fault(
    'a Japanese dash in a number is a letter',
    'src/domain/phone-number.ts',
    "lowerCase(withAsciiDigits($$$TYPED)).replace(DASHES_OF_CJK, '-')",
    'lowerCase(withAsciiDigits($$$TYPED))',
  ),
  fault(
    'a remark after a number makes another one',
    'src/domain/phone-number.ts',
    'if (!isSpelledForSure && digitsIn(digits).length >= few) return NOT_SPELLED;',
  ),
  fault(
    'a domain is compared as it is typed',
    CONTACT,
    "const ascii = isIPv4(parsed) ? '' : parsed;",
    "const ascii = '' as string;",
  ),
  {
    name: 'an address is compared by the composition of its letters',
    patches: [
      { file: CONTACT, find: "address.replace($$$INVISIBLE).normalize('NFC')", put: 'address.replace($$$INVISIBLE)' },
      { file: CONTACT, find: "lowerCase(local).normalize('NFC')", put: 'lowerCase(local)' },
    ],
  },
  fault(
    'an invisible character makes another address',
    CONTACT,
    "address.replace($$$INVISIBLE).normalize('NFC')",
    "address.normalize('NFC')",
  ),

  repeated('a move', 'change-lead', "command.requestId, 'change lead stage', studioId, leadId"),
  repeated('a correction', 'change-lead', "command.requestId, 'update lead', studioId, leadId"),
  repeated('PutMember', 'members-and-sources', "command?.requestId, 'put member', studioId, id"),
  repeated('RemoveMember', 'members-and-sources', "command.requestId, 'remove member', studioId, memberId"),
  repeated('PutLeadSource', 'members-and-sources', "given.requestId, 'put lead source', studioId, id"),
  repeated('PutStudio', 'studios', "command?.requestId, 'put studio', id"),
  repeated('PutApiKeyQuota', 'manage-api-keys', "requestId, 'put API key quota', studioId, id"),
  fault(
    'on MongoDB, an error of the server that is not about the history replaces it',
    'src/store/mongo/apply-once.ts',
    'if (record || !isReason) throw error;',
  ),

  fault(
    'the log has the leads of an import',
    'src/rpc/log.ts',
    'leads: Number.isSafeInteger',
    'leads: (() => true) as (value: unknown) => boolean',
  ),
  fault(
    'EraseContact misses a lead by its former contact',
    'src/usecases/erase-leads.ts',
    "findContactLeads(store, studioId, contact as Contact, 'former')",
    'findContactLeads(store, studioId, contact as Contact)',
  ),
  fault(
    "an import of one's own export writes closed and erased leads again",
    'src/usecases/import-leads.ts',
    'if (presence) return $RESULT',
  ),
  fault(
    'the use of a key is not noted once a clock was set back',
    'src/usecases/authenticate-api-key.ts',
    'time >= began && time - began < WRITE_INTERVAL_MS',
    'time - began < WRITE_INTERVAL_MS',
  ),

  fault(
    'the client for TypeScript reports a lost reply as not written',
    'sdk/attempt.ts',
    'return !isNotSent(attempt.cause);',
    'return false;',
  ),
  fault(
    'the client for TypeScript takes any refusal as the outcome of earlier attempts',
    'sdk/attempt.ts',
    'SETTLING_CODES.includes(code) || (SETTLING_CODES_WITH_FIELDS.includes(code) && areOfData(Object.keys(fields)))',
    'true',
  ),
  fault(
    'the client for TypeScript ignores Retry-After',
    'sdk/send.ts',
    'retryDelayMs(attempts, retryAfterOf(last))',
    'retryDelayMs(attempts)',
  ),
  fault(
    'an outbox erases a message that nobody has taken',
    'sdk/outbox/outcome.ts',
    'note === undefined || note === null ? null : REASON_NOT_TAKEN',
    'null',
  ),
  fault(
    'an outbox waits by the attempts of a lead when all have to wait',
    RETRIES,
    'isShort ? pauseMs(retryAfterSeconds) : retryDelayMs(attempts, retryAfterSeconds)',
    'retryDelayMs(attempts, retryAfterSeconds)',
  ),
  fault(
    'in an outbox, a refusal by the quota counts as an attempt',
    RETRIES,
    "isFree: isOfAll(reason) && problem.written === 'no'",
    'isFree: false',
  ),

  fault(
    'in memory, a refusal ends when its limit is raised',
    'gateway/admission/quota/memory-quota.ts',
    'const refuses = refusedMs > 0 || isExhausted;',
    'const refuses = isExhausted;',
  ),
  {
    name: 'in Redis, a refusal ends when its limit is raised',
    patches: [{ file: REDIS, text: 'local refuses = refused > 0 or isExhausted', put: 'local refuses = isExhausted' }],
  },
  {
    name: 'a Redis whose clock was set back refuses until it is back',
    patches: [
      { file: REDIS, text: "if left > lasts then redis.call('PEXPIRE', name, lasts) left = lasts end", put: '' },
      { file: REDIS, text: "if left > length then redis.call('PEXPIRE', counter, length) left = length end", put: '' },
    ],
  },
  fault(
    'a gateway is not ready while its core drains',
    'gateway/core/core-client.ts',
    'isDraining = headers.has(DRAINING_HEADER);',
  ),
  fault(
    'ids stay ahead of a clock that was ahead by mistake',
    'src/domain/new-id.ts',
    'aheadMs < 0 || aheadMs > MAX_AHEAD_MS',
    'aheadMs < 0',
  ),
  fault(
    'a region changes without an event',
    'src/store/decisions/directory.ts',
    'if (regionCode !== undefined && regionCode !== before.regionCode) $RECORD',
  ),
  fault(
    'a member comes and goes without an event',
    'src/store/decisions/directory.ts',
    "before === role ? [] : [{ action: 'studio-member-changed', ...actorIn(by), time, from, to }]",
    '[]',
  ),

  fault(
    'on MongoDB, a lead is told with the kinds of an older state',
    'src/store/mongo/deliveries.ts',
    'isSame && !mark?.since',
    'true || mark?.since',
  ),
];

/** Those that are planted bugs of the suites, too. */
const ALSO_IN_SUITES = [
  'a phone number is compared by E.164 only',
  'a phone number is compared by its digits only',
  'a lead does not claim the digits of its contact',
  'a contact is searched by the current region only',
  'on SQLite, a repeated request takes effect again',
  'a further attempt undoes what others have written since',
  'an erased lead keeps its original data',
  'an imported closed lead blocks its contact',
  'on SQLite, a lead is told with the kinds of an older state',
  'on MongoDB, a change that was acknowledged is delivered again',
  'cells of CSV beyond the header are cut off',
  'each command knows only the times of its own session',
  'in memory, a refused key is admitted before the announced time',
  'a caller may call methods outside its roles',
];

/** The names of all faults of earlier releases that a life may show. Of some, none has shown them yet. */
export const NAMES_OF_PAST_FAULTS: ReadonlySet<string> = new Set([
  ...PAST_FAULTS.map(({ name }) => name),
  ...ALSO_IN_SUITES,
]);
