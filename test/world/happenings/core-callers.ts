import { type ClientHttp2Session, connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { PREFACE } from '../../security/http2-wire.ts';
import { times } from '../../support/builders.ts';
import type { KnownStudio, Life } from '../life.ts';
import { lasting, one } from './choices.ts';
import { aHappening } from './happening.ts';
import { connection, hold } from './holders.ts';

/** How many calls one connection has under way. */
const CALLS = 50;

/** Somebody with the token asks for many pages, and reads none of them. */
export const unreadPages = aHappening({
  weight: 1,
  choice: fc.record({ connections: fc.constantFrom(1, 5, 30), core: fc.nat(1), forMs: lasting(50, 3000) }),
  happen: (life, { connections, core, forMs }) =>
    hold(life, `${connections * CALLS} calls of a core whose answers nobody reads`, async (studio) => {
      const sessions = times(connections, () => callers(life, one(life.world.coreUrls, core), studio));
      await sleep(forMs);
      for (const session of sessions) session.destroy();
    }),
});

/** Somebody without the token opens more connections to a core than it lets strangers have. */
export const strangers = aHappening({
  weight: 1,
  choice: fc.record({
    count: fc.constantFrom(20, 300),
    says: fc.constantFrom('nothing', 'that it speaks HTTP/2', 'what is none'),
    core: fc.nat(1),
    forMs: lasting(50, 3000),
  }),
  happen: (life, { count, says, core, forMs }) =>
    hold(life, `${count} connections to a core, on which is said ${says}`, async () => {
      const url = one(life.world.coreUrls, core);
      const sockets = await Promise.all(times(count, () => connection(url)));
      for (const socket of sockets) {
        socket.resume();
        if (says === 'that it speaks HTTP/2') socket.write(PREFACE);
        if (says === 'what is none') socket.write(Buffer.alloc(200, 'x'));
      }
      await sleep(forMs);
      for (const socket of sockets) socket.destroy();
    }),
});

/** A connection that leaves no room for answers, and asks for a page of leads again and again. */
function callers({ world }: Life, url: string, { id: studioId }: KnownStudio): ClientHttp2Session {
  const session = connect(url, { ...world.certificates?.caller, settings: { initialWindowSize: 0 } });
  session.on('error', () => {});
  const authorization = `Bearer ${world.coreToken}`;
  for (const _ of times(CALLS, () => 0)) {
    const call = session.request({
      ':method': 'POST',
      ':path': '/leadintake.v1.LeadIntakeService/ListLeads',
      'content-type': 'application/json',
      authorization,
    });
    call.on('error', () => {});
    call.end(JSON.stringify({ studioId, pageSize: 100, view: 'LEAD_VIEW_FULL' }));
  }
  return session;
}
