/** The addresses of the sentinels, and the credentials for the primary that they name. */
export interface SentinelAddress {
  readonly sentinels: readonly { readonly host: string; readonly port: number }[];
  /** The sentinels' name for the primary. */
  readonly name: string;
  readonly username?: string;
  readonly password?: string;
  readonly db?: number;
}

/** A pattern instead of a URL, because there are several hosts. */
const FORM =
  /^redis\+sentinel:\/\/(?:(?<username>[^:@/]*)(?::(?<password>[^:@/]*))?@)?(?<hosts>[^@/]+)\/(?<name>[\w.-]+)(?:\/(?<db>\d+))?$/;
const HOST = /^(?:\[(?<v6>[\da-f:.]+)\]|(?<host>[\w.-]+))(?::(?<port>\d{1,5}))?$/i;

const SENTINEL_PORT = '26379';

/**
 * Parses `redis+sentinel://user:password@host:port,host:port/NAME/DATABASE`. Everything but hosts and name is optional.
 *
 * @returns undefined for any other address
 */
export function readSentinelAddress(address: string): SentinelAddress | undefined {
  const { username, password, hosts = '', name = '', db } = FORM.exec(address)?.groups ?? {};
  const found = hosts.split(',').map((host) => HOST.exec(host)?.groups);
  try {
    const sentinels = found.flatMap((groups) =>
      groups ? { host: groups.v6 ?? groups.host ?? '', port: Number(groups.port ?? SENTINEL_PORT) } : [],
    );
    if (sentinels.length < found.length || sentinels.some(({ port }) => port > 65_535)) return undefined;
    return {
      sentinels,
      name,
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(db && { db: Number(db) }),
    };
  } catch {
    // The username or password is not percent-encoded.
    return undefined;
  }
}
