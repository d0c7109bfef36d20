import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { aGateway } from '../integration/a-gateway.ts';
import { allLeads, arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { CORE_TOKEN, startTestCore } from '../support/grpc.ts';
import { aCapture } from '../support/service.ts';
import { type Loss, startProxy, type TcpProxy } from '../tools/tcp-proxy.ts';
import { testSize } from '../tools/test-size.ts';
import { type Answer, ask } from './load.ts';

/** The distance between two cuts of a message; bytes. The soak run cuts after every byte. */
const CUT_EVERY = testSize('CRASH_CUT_EVERY', { usual: 31, soak: 1 });

vi.setConfig({ testTimeout: 600_000 + 1_200_000 / CUT_EVERY });

/** How often a request is repeated until the connection works again. */
const MAX_REPETITIONS = 10;

/** The direction of the exchange that is cut. */
type Part = 'replyBytes' | 'requestBytes';

/** A service with a proxy on one of its connections. */
interface FaultyService {
  readonly proxy: TcpProxy;
  readonly secret: string;
  /** The address of the first request, which passes the proxy. */
  readonly url: string;
  /** The address of the repetition, which bypasses a proxy on the caller's own connection. */
  readonly directUrl: string;
  /** The ids of all leads in the core. */
  leadIds(): Promise<string[]>;
}

// @proves crashes-5
describe.each(['the gateway', 'the core'] as const)('on the connection to %s', (target) => {
  test.each<[string, Part]>([
    ['a reply', 'replyBytes'],
    ['a request', 'requestBytes'],
  ])('after %s is cut at any byte, the caller gets a response and a repetition the one lead', async (_, part) => {
    const service = await aFaultyService(target);
    const cuts = await cutEverywhere(service, part);
    expect(cuts * CUT_EVERY).toBeGreaterThan(100);
  });
});

/** Cuts each message of a creation at each place, one cut per creation; returns the number of cuts. */
async function cutEverywhere(service: FaultyService, part: Part): Promise<number> {
  const created: string[] = [];
  let cuts = 0;
  for (let from = 1; ; from += 1) {
    let bytes = 0;
    for (; ; bytes += CUT_EVERY) {
      const { isCut, leadId } = await createWith(service, { of: () => true, from, [part]: bytes });
      created.push(leadId);
      if (!isCut) break;
      cuts += 1;
    }
    // There are no further messages.
    if (bytes === 0) break;
  }
  expect((await service.leadIds()).sort()).toEqual(created.sort());
  return cuts;
}

/** Creates a lead while a message is cut, if that message is sent; then repeats the request on an intact connection. */
async function createWith(service: FaultyService, loss: Loss): Promise<{ isCut: boolean; leadId: string }> {
  const { proxy, secret, url, directUrl } = service;
  const request = { key: randomUUID(), body: JSON.stringify(aCapture()) };
  proxy.loseReplies(loss);
  const first = await ask(url, secret, request);
  const isCut = proxy.lost() > 0;
  proxy.heal();
  let again: Answer;
  for (let repetition = 0; repetition < MAX_REPETITIONS && again?.status !== 201; repetition += 1) {
    again = await ask(directUrl, secret, request);
  }
  if (again?.status !== 201) throw new Error(`asked again: ${again?.text}`);
  if (first?.status === 201) expect(first.text).toBe(again.text);
  else if (first) expect(first.code).toBe('integration_unavailable');
  return { isCut, leadId: JSON.parse(again.text).lead.id };
}

/** Starts a separate service with a proxy in front of one part. */
async function aFaultyService(target: 'the gateway' | 'the core'): Promise<FaultyService> {
  const core = await startTestCore();
  onTestFinished(() => core.stop());
  const toCore = await aProxy(new URL(core.url));
  const gateway = await aGateway(`http://127.0.0.1:${toCore.port}`);
  const toGateway = await aProxy(new URL(gateway.url));
  const clients = connectToCore(core.url, CORE_TOKEN);
  onTestFinished(() => clients.close());
  const { studioId, secret } = await arrangeStudio(clients);
  const isGateway = target === 'the gateway';
  return {
    proxy: isGateway ? toGateway : toCore,
    secret,
    url: isGateway ? `http://127.0.0.1:${toGateway.port}` : gateway.url,
    directUrl: gateway.url,
    leadIds: async () => (await allLeads(clients, studioId)).map(({ id }) => id),
  };
}

async function aProxy({ hostname, port }: URL): Promise<TcpProxy> {
  const proxy = await startProxy(hostname, Number(port));
  onTestFinished(() => proxy.stop());
  return proxy;
}
