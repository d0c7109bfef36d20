import { createRequire } from 'node:module';
import type { MongoClient } from 'mongodb';

/* Every process that reads DATABASE_URL loads this module, but only a MongoDB address loads the driver. */
const load = createRequire(import.meta.url);

const DEFAULT_NAME = 'lead-intake';

/** The names of MongoDB's own databases. Two names must not differ only in case. */
const RESERVED = ['admin', 'config', 'local'];

const MAX_NAME_BYTES = 63;

/** Characters that a name must not contain, on any server's operating system. */
const SHOWN_FORBIDDEN = '/\\."$*<>:|?';
const FORBIDDEN = `${SHOWN_FORBIDDEN} \0`;

/** Returns the fault of an address, without repeating any of it, because it may contain a password. */
export function mongoUrlFault(url: string): string | undefined {
  try {
    return nameFault(databaseNameIn(url));
  } catch (error) {
    // The driver may take a part of a password for a host.
    const message = (error as Error).message
      .replaceAll(url, '…')
      .replace(/Unable to parse .*/, 'a host cannot be read');
    return `is refused by the driver: ${message}`;
  }
}

/**
 * Returns the name of an address's database. The driver's own default would be `test`.
 *
 * @param client a client of the address; its constructor does not connect
 * @throws what the driver finds wrong with the address
 */
export function databaseNameIn(url: string, client = createMongoClient(url)): string {
  const { ConnectionString }: typeof import('mongodb-connection-string-url') = load('mongodb-connection-string-url');
  const { dbName } = client.options;
  const { pathname, searchParams } = new ConnectionString(url);
  const isNamed = pathname.length > 1 || searchParams.has('dbName');
  return isNamed ? dbName : DEFAULT_NAME;
}

function createMongoClient(url: string): MongoClient {
  const driver: typeof import('mongodb') = load('mongodb');
  return new driver.MongoClient(url);
}

function nameFault(name: string): string | undefined {
  if ([...name].some((character) => FORBIDDEN.includes(character)))
    return `names a database that cannot exist: leave spaces, NUL and ${SHOWN_FORBIDDEN} out of its name`;
  if (Buffer.byteLength(name) > MAX_NAME_BYTES)
    return `names a database that cannot exist: its name may have at most ${MAX_NAME_BYTES} bytes`;
  if (RESERVED.includes(name.toLowerCase()))
    return `names one of MongoDB's own databases: name another, and the database that has the user in authSource`;
  return undefined;
}
