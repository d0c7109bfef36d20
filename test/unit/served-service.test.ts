import { expect, onTestFinished, test } from 'vitest';
import { startServedService } from '../tools/served-service.ts';

test('a service that cannot start is reported as ended, and nobody waits for it', async () => {
  await expect(startServedService({ QUOTA_LIMIT: 'many' })).rejects.toThrow('the service has ended with 1');
});

test('a call of a service rejects with the reason of a refusal, and in any case once the service has ended', async () => {
  const service = await startServedService({});
  onTestFinished(() => service.stop());
  await expect(service.eraseLead('nobody', 'nothing')).rejects.toThrow('The request is not valid.');

  const underWay = service.countLeads('nobody').catch((error) => error.message);
  await service.stop();

  // Its answer, or that there is none.
  expect([0, 'the service has ended with 0']).toContain(await underWay);
  await expect(service.countLeads('nobody')).rejects.toThrow('Channel closed');
});
