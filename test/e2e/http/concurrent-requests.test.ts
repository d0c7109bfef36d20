import { describe, expect, test } from 'vitest';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { times } from '../../support/builders.ts';
import { aCapture, aService, expectProblem, type StudioWithKey } from '../../support/service.ts';

const service = aService();

describe('during a burst of requests', () => {
  // @proves isolation-2
  test.each<[string, (studio: StudioWithKey) => Promise<unknown>, number, string]>([
    ['a key that is revoked', (studio) => service.apiKeys.revokeApiKey(studio), 401, 'integration_key_invalid'],
    ['a secret that is replaced', (studio) => service.apiKeys.replaceApiKey(studio), 401, 'integration_key_invalid'],
    [
      'a studio that is suspended',
      ({ studioId }) => service.directory.putStudio({ studio: { id: studioId, status: StudioStatus.SUSPENDED } }),
      402,
      'subscription_suspended',
    ],
    [
      'an issuer who is removed',
      (studio) => service.directory.removeMember(studio),
      403,
      'integration_issuer_forbidden',
    ],
  ])(
    '%s admits no request that starts after the RPC returned',
    { tags: ['5.10', '5.11', '7.subscription_suspended'] },
    async (_, takeAway, status, code) => {
      for (const _ of times(2, () => 0)) {
        const studio = await service.aStudioWithKey();
        let isTaken = false;
        let served = 0;
        let refused = 0;
        const callers = times(16, async (index) => {
          for (let after = 0; after < 5; ) {
            const startsAfter = isTaken;
            const response =
              index % 2 === 0 ? await service.get(studio.secret) : await service.post(studio.secret, aCapture());
            if (startsAfter) {
              after += 1;
              await expectProblem(response, status, code, []);
              refused += 1;
            } else if (response.status === 200 || response.status === 201) {
              await response.arrayBuffer();
              served += 1;
            } else await expectProblem(response, status, code, []);
          }
        });
        await expect.poll(() => served).toBeGreaterThan(32);

        await takeAway(studio);
        isTaken = true;
        await Promise.all(callers);

        expect(refused).toBe(16 * 5);
      }
    },
  );
});
