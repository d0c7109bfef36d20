import { once } from 'node:events';
import { type ClientHttp2Session, connect, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';

/** What stands between a gateway and its core. */
export interface EarlierCore {
  /** Where gateways find it. */
  readonly url: string;
  /** What was asked of the service that the earlier release does not have, so far. */
  asked(): number;
  /** Says where the core is. */
  hasCore(coreUrl: string): void;
  /** From now on the core is one of today. */
  update(): void;
  stop(): Promise<void>;
}

/**
 * Makes a core one of an earlier release: one that has all services but one, and says of that what it says of any that it does not
 * have. Hands on what calls of Connect consist of: headers and bytes.
 */
export async function startEarlierCore(missing: string): Promise<EarlierCore> {
  let session: ClientHttp2Session | undefined;
  let asked = 0;
  let isEarlier = true;
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const isMissing = headers[':path']?.startsWith(`/${missing}/`);
    if (isMissing) asked += 1;
    const path = isMissing && isEarlier ? '/leadintake.v1.NoSuchService/Exchange' : headers[':path'];
    const onward = session?.request({ ...headers, ':path': path });
    if (!onward) return stream.close();
    for (const side of [stream, onward]) side.on('error', () => {});
    onward.on('response', (response) => {
      // Who is gone takes nothing.
      if (!stream.closed) stream.respond(response);
      onward.pipe(stream);
    });
    // Asked how the service is that it does not have, it says the same.
    stream.on('data', (bytes: Buffer) => onward.write(isEarlier ? withoutName(bytes, missing) : bytes));
    stream.on('end', () => onward.end());
    stream.on('close', () => onward.close());
  });
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (each) => sessions.add(each));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: () => asked,
    hasCore(coreUrl) {
      session = connect(coreUrl);
      session.on('error', () => {});
    },
    update() {
      isEarlier = false;
    },
    async stop() {
      session?.destroy();
      for (const each of sessions) each.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The same bytes, with another name of the same length where they have that of a service. */
function withoutName(bytes: Buffer, name: string): Buffer {
  const others = name.replace(/.$/, '_');
  return Buffer.from(bytes.toString('latin1').replaceAll(name, others), 'latin1');
}
