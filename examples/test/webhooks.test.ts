import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { delimiter } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { PYTHON_TOOL, pythonForTests } from '../../sdk/test/support/python.ts';
import { aWebhookDeployment, aWebhookSecret } from '../../test/support/webhooks.ts';
import { anAuthority } from '../../test/tools/certificates.ts';
import { findCommands, missingTools, watchCommands } from '../../test/tools/commands.ts';
import { describeIf, freePort } from '../../test/tools/servers.ts';

const TOOLS: Readonly<Record<string, readonly string[]>> = {
  javascript: [],
  python: [PYTHON_TOOL],
  go: ['go -C examples/webhooks/go list -m'],
};

/** Starts a proxy that terminates TLS for a program on this machine, and returns its port. */
async function aProxyTo(port: number, certificate: { cert: string; key: string }): Promise<number> {
  const server = createServer(certificate, (request, response) => {
    const passed = httpRequest({ port, method: 'POST', path: request.url, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.writeHead(502).end());
    request.pipe(passed);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

for (const [language, tools] of Object.entries(TOOLS)) {
  const missing = missingTools(tools);
  // @proves relay-2
  describeIf(missing.length === 0, `the webhook receiver in ${language}`, `make these succeed: ${missing}`, () => {
    test(`the ${language} receiver accepts the relay's deliveries, and refuses forged ones`, async () => {
      const deployment = await aWebhookDeployment();
      const { crm, studioId, memberId } = deployment;
      const [secret, other] = [aWebhookSecret(), aWebhookSecret()];
      const port = await freePort();
      const programs = language === 'python' ? [await pythonForTests()] : [];
      const receiver = watchCommands(findCommands(`${language}-webhooks`), {
        PATH: [...programs, process.env.PATH].join(delimiter),
        PORT: `${port}`,
        WEBHOOK_SECRET: secret,
      });
      onTestFinished(() => receiver.kill());
      const send = (headers: Record<string, string>) =>
        fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{"type":"lead.changed"}', headers }).then(
          ({ status }) => status,
          () => 'no answer',
        );
      // Waits until the receiver has started.
      await expect.poll(() => send({})).toBe(401);

      const authority = await anAuthority('proxies');
      const proxyPort = await aProxyTo(port, await authority.issue('localhost', 'server'));

      writeFileSync(deployment.receiver.caFile, authority.cert);
      deployment.putEndpoints({ url: `https://localhost:${proxyPort}/`, secrets: [other, secret], payload: 'full' });
      deployment.relay();
      const leadId = await deployment.createLead('ünlü@example.org');
      await receiver.printed(new RegExp(`^lead\\.changed ${leadId} \\d+ created$`, 'm'));
      await crm.leads.changeLeadStage({ studioId, leadId, memberId, stage: LeadStage.WON });
      await receiver.printed(new RegExp(`^lead\\.changed ${leadId} \\d+ \\S*stage_changed$`, 'm'));
      await crm.leads.eraseLead({ studioId, leadId });
      await receiver.printed(new RegExp(`^lead\\.erased ${leadId} \\d+ \\S*erased$`, 'm'));
      await expect.poll(() => deployment.waiting()).toBe(0);

      const time = `${Math.floor(Date.now() / 1000)}`;
      const forged = {
        'webhook-id': randomUUID(),
        'webhook-timestamp': time,
        'webhook-signature': `v1,${'A'.repeat(43)}=`,
      };
      expect(await send(forged)).toBe(401);
    });

    test(`the ${language} receiver survives a body that is cut off, too long or mis-sized`, async () => {
      const port = await freePort();
      const programs = language === 'python' ? [await pythonForTests()] : [];
      const receiver = watchCommands(findCommands(`${language}-webhooks`), {
        PATH: [...programs, process.env.PATH].join(delimiter),
        PORT: `${port}`,
        WEBHOOK_SECRET: aWebhookSecret(),
      });
      onTestFinished(() => receiver.kill());
      const isThere = () =>
        fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' }).then(
          ({ status }) => status,
          () => 'no answer',
        );
      await expect.poll(isThere).toBe(401);
      /** Sends a body, then disconnects or waits until the receiver closes the connection. */
      const post = async (length: string, bytes: number, goesAway = false) => {
        const socket = connect(port, '127.0.0.1').on('error', () => {});
        const closed = new Promise((close) => socket.on('close', close));
        socket.resume().write(`POST / HTTP/1.1\r\nhost: localhost\r\n${length}\r\n\r\n`);
        // Announces one chunk of 2 GiB.
        if (length.startsWith('transfer-encoding')) socket.write(`${(2 ** 31).toString(16)}\r\n`);
        socket.write('x'.repeat(bytes), () => goesAway && socket.resetAndDestroy());
        await closed;
      };

      await post('content-length: 100', 10, true);
      expect(await isThere()).toBe(401);
      await post(`content-length: ${2 ** 31}`, 2 ** 21);
      await post('transfer-encoding: chunked', 2 ** 21);
      await post('content-length: -1', 10);
      await post('content-length: x', 10);
      expect(await isThere()).toBe(401);
    });
  });
}
