import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { times } from '../support/builders.ts';
import { describeWithHaproxy, startHaproxy } from '../support/haproxy.ts';
import { describeWithNginx, GUIDE, startNginx } from '../support/nginx.ts';
import { lines, takeAnswer } from '../support/raw-http.ts';
import { anotherGateway, aService, LEADS } from '../support/service.ts';
import { sendSlowly } from '../support/slow-sender.ts';
import { freePort } from '../tools/servers.ts';

const service = aService();

/** A body over the limit. A gateway refuses it before it has read all of it. */
const LONG = Buffer.alloc(200_000, 'x');
const ROUNDS = 3;

/** Sends long bodies without a key, at once and slowly, next to a client with a key; returns the statuses of each. */
async function statusesAt(url: string) {
  const { secret } = await service.aStudioWithKey();
  const authorization = `Bearer ${secret}`;
  const { hostname: host, port } = new URL(url);
  const fetched = async (path: string, init: RequestInit) => {
    const response = await fetch(url + path, init);
    await response.text();
    return response.status;
  };
  const post = (headers: Record<string, string>) => fetched(LEADS, { method: 'POST', body: LONG, headers });
  const postSlowly = async () => {
    const socket = connect({ host, port: Number(port), allowHalfOpen: true, noDelay: true });
    const head = lines(`POST ${LEADS} HTTP/1.1`, 'Host: a', `Content-Length: ${LONG.length}`, '');
    return takeAnswer(await sendSlowly(socket, head, LONG), false)?.answer.status;
  };
  const statuses = { withoutKey: new Set(), slow: new Set(), tooLong: new Set(), lists: new Set() };
  for (const _ of times(ROUNDS, () => 0)) {
    const list = () => fetched(LEADS, { headers: { authorization } });
    const kinds = { withoutKey: () => post({}), slow: postSlowly, tooLong: () => post({ authorization }), lists: list };
    await Promise.all(
      Object.entries(kinds).flatMap(([kind, send]) =>
        times(4, async () => statuses[kind as keyof typeof kinds].add(await send())),
      ),
    );
  }
  return statuses;
}

/** Starts a second gateway and returns the ports of both. */
async function gatewayPorts(): Promise<number[]> {
  return [service.url, await anotherGateway(service)].map((url) => Number(new URL(url).port));
}

const EACH_ITS_ANSWER = {
  withoutKey: new Set([401]),
  slow: new Set([401]),
  tooLong: new Set([400]),
  lists: new Set([200]),
};

const withDefaults = (more = '') => `upstream gateways {
  server 10.0.0.11:8080;
  server 10.0.0.12:8080;
}
server {
  listen 80;
  ${more}
  location / { proxy_pass http://gateways; }
}
`;

// @proves hostile-5 docs-1
describeWithNginx('behind nginx', () => {
  test.each([
    ['the settings of the guide', GUIDE.gateways],
    ['its defaults', withDefaults()],
    ['requests that it does not buffer', withDefaults('proxy_request_buffering off;')],
    [
      'connections that it keeps, and requests that it does not buffer',
      withDefaults('proxy_request_buffering off; proxy_http_version 1.1; proxy_set_header Connection "";'),
    ],
  ])('behind nginx with %s, early responses arrive and fail no request of another client', async (_, settings) => {
    const port = await freePort();
    await startNginx(settings, port, await gatewayPorts());
    expect(await statusesAt(`http://127.0.0.1:${port}`)).toEqual(EACH_ITS_ANSWER);
  });
});

// @proves hostile-5
describeWithHaproxy('behind HAProxy', () => {
  test('behind HAProxy, early responses arrive and fail no request of another client', async () => {
    const { apiUrl, readState } = await startHaproxy(await gatewayPorts(), [await freePort(), await freePort()]);
    const port = Number(new URL(service.url).port);
    await expect.poll(() => readState(port), { timeout: 30_000 }).toBe('UP');
    expect(await statusesAt(apiUrl)).toEqual(EACH_ITS_ANSWER);
  });
});
