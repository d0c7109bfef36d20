import { once } from 'node:events';
import { type ClientHttp2Session, connect, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';

/** A proxy between a gateway and its core. */
export interface EarlierCore {
  /** The address for gateways. */
  readonly url: string;
  /** The number of calls so far to the service that the earlier release does not have. */
  callCount(): number;
  /** Sets the address of the core. */
  setCoreUrl(coreUrl: string): void;
  /** Passes on the missing service from now on, as after an update of the core. */
  update(): void;
  stop(): Promise<void>;
}

/**
 * Makes a current core look like one of an earlier release that lacks one service. Calls to that service get the response for
 * an unknown service. Passes on the headers and bytes of Connect calls.
 */
export async function startEarlierCore(missing: string): Promise<EarlierCore> {
  let session: ClientHttp2Session | undefined;
  let callCount = 0;
  let isEarlier = true;
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const isMissing = headers[':path']?.startsWith(`/${missing}/`);
    if (isMissing) callCount += 1;
    const path = isMissing && isEarlier ? '/leadintake.v1.NoSuchService/Exchange' : headers[':path'];
    const onward = session?.request({ ...headers, ':path': path });
    if (!onward) return stream.close();
    for (const side of [stream, onward]) side.on('error', () => {});
    onward.on('response', (response) => {
      // The caller may have disconnected.
      if (!stream.closed) stream.respond(response);
      onward.pipe(stream);
    });
    // A health check of the missing service also gets the response for an unknown one.
    stream.on('data', (bytes: Buffer) => onward.write(isEarlier ? withoutName(bytes, missing) : bytes));
    stream.on('end', () => onward.end());
    stream.on('close', () => onward.close());
  });
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (each) => sessions.add(each));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    callCount: () => callCount,
    setCoreUrl(coreUrl) {
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

/** Replaces a service's name in a message by another one of the same length. */
function withoutName(bytes: Buffer, name: string): Buffer {
  const others = name.replace(/.$/, '_');
  return Buffer.from(bytes.toString('latin1').replaceAll(name, others), 'latin1');
}
