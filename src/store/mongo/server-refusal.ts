import { MongoBulkWriteError, MongoServerError, MongoWriteConcernError } from 'mongodb';
import { StoreUnavailable } from '../port/faults.ts';

/** The error of a call that must not be retried: the server refused it, or a retry could take effect twice. */
export class NotRepeatable extends StoreUnavailable {}

/** Labels of errors after which a command may be sent again. */
const REPEATABLE_LABELS = [
  'RetryableWriteError',
  'RetryableError',
  'SystemOverloadedError',
  'TransientTransactionError',
  'UnknownTransactionCommitResult',
  'PoolRequestedRetry',
];

/**
 * Codes of passing conditions, and of errors after which the outcome is unknown. Servers before 4.4, and compatible
 * ones, send no labels.
 */
const PASSING = new Set([
  1, // InternalError: FerretDB reports a lost connection to its database so
  6, // HostUnreachable
  7, // HostNotFound
  8, // UnknownError
  24, // LockTimeout
  46, // LockBusy
  50, // MaxTimeMSExpired
  63, // StaleShardVersion
  64, // WriteConcernTimeout
  89, // NetworkTimeout
  91, // ShutdownInProgress
  112, // WriteConflict
  133, // FailedToSatisfyReadPreference
  134, // ReadConcernMajorityNotAvailableYet
  150, // StaleEpoch
  189, // PrimarySteppedDown
  202, // NetworkInterfaceExceededTimeLimit
  262, // ExceededTimeLimit
  317, // ConnectionPoolExpired
  365, // TemporarilyUnavailable
  384, // ConnectionError
  391, // ReauthenticationRequired
  9001, // SocketException
  10058, // LegacyNotPrimary
  10107, // NotWritablePrimary
  11600, // InterruptedAtShutdown
  11601, // Interrupted
  11602, // InterruptedDueToReplStateChange
  13388, // StaleConfig
  13435, // NotPrimaryNoSecondaryOk
  13436, // NotPrimaryOrSecondary
  // FerretDB sends errors of PostgreSQL as numbers: a deadlock is 16908292.
  ...[
    '08000', // connection_exception
    '08001', // sqlclient_unable_to_establish_sqlconnection
    '08003', // connection_does_not_exist
    '08004', // sqlserver_rejected_establishment_of_sqlconnection
    '08006', // connection_failure
    '25006', // read_only_sql_transaction: a standby, during a failover
    '40001', // serialization_failure
    '40P01', // deadlock_detected
    '53200', // out_of_memory
    '53300', // too_many_connections
    '55P03', // lock_not_available
    '57014', // query_canceled
    '57P01', // admin_shutdown
    '57P02', // crash_shutdown
    '57P03', // cannot_connect_now
    'XX000', // internal_error
  ].map(numberOfSqlState),
]);

/**
 * Returns the error for a command that the server refused, and would refuse again. It has the code and its name, but no
 * text of the server, which may contain values. Undefined: the outcome is unknown, the condition passes, or a unique
 * index refused the write.
 */
export function serverRefusal(thrown: unknown): NotRepeatable | undefined {
  // The driver hides IllegalOperation in an error of its own.
  const error = thrown instanceof MongoServerError ? (thrown.originalError ?? thrown) : thrown;
  // A bulk write's error may also wrap a network error, which has no number.
  if (!(error instanceof MongoServerError) || typeof error.code !== 'number') return undefined;
  if (isDuplicate(error) || PASSING.has(error.code) || isUnknown(error)) return undefined;
  const codeName: unknown = error.codeName;
  const name = typeof codeName === 'string' && /^\w{1,64}$/.test(codeName) ? codeName : 'error';
  return new NotRepeatable(`the database refused a command: ${name} (${error.code})`);
}

function isUnknown(error: MongoServerError): boolean {
  // The write was applied, but perhaps not by a majority.
  if (error instanceof MongoWriteConcernError) return true;
  if (error instanceof MongoBulkWriteError && error.result.getWriteConcernError()) return true;
  return REPEATABLE_LABELS.some((label) => error.hasErrorLabel(label));
}

/** Returns the number of an SQLSTATE: six bits for each of its five characters, the first in the lowest. */
function numberOfSqlState(state: string): number {
  return [...state].reduce((sum, character, index) => sum + (character.charCodeAt(0) - 48) * 64 ** index, 0);
}

/** Conflicts, for which the server aborts one of several commands. */
const CONFLICTS = new Set<unknown>([112, numberOfSqlState('40001'), numberOfSqlState('40P01')]);

/** Whether the server aborted a command because of others, so that it succeeds once they have ended. */
export function isConflict(error: unknown): boolean {
  // Other writes of the command may have been refused for another reason.
  if (error instanceof MongoBulkWriteError && [error.writeErrors].flat().some(({ code }) => CONFLICTS.has(code)))
    return true;
  return error instanceof MongoServerError && CONFLICTS.has(error.code);
}

/** Codes of a write whose document would be too large. The last one is FerretDB's. */
const TOO_LARGE: readonly unknown[] = [10334, 17419, 285999133];

/** Codes of an update that is refused because of its document: its fields, or its size. */
export const OF_DOCUMENT: readonly unknown[] = [2, 9, 14, 28, 121, ...TOO_LARGE];

export const isTooLarge = (error: unknown): boolean => isOneOfCodes(TOO_LARGE, error);

export const isOfDocument = (error: unknown): boolean => isOneOfCodes(OF_DOCUMENT, error);

const isOneOfCodes = (codes: readonly unknown[], error: unknown): boolean =>
  error instanceof MongoServerError && codes.includes(error.code);

/** The code of a write that a unique index refused. */
export const DUPLICATE = 11000;

/** Whether a unique index refused a write. Engines word the error differently, so the index is unknown. */
export const isDuplicate = (error: unknown): boolean => error instanceof MongoServerError && error.code === DUPLICATE;

/** Returns true after an insert, and false if a unique index refused it. */
export const isInserted = (insert: Promise<unknown>): Promise<boolean> =>
  insert.then(
    () => true,
    (error) => {
      if (isDuplicate(error)) return false;
      throw error;
    },
  );
