import type { ServiceImpl } from '@connectrpc/connect';
import type { ConsumerService } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import type { CallerRole } from '../domain/caller.ts';
import type { Consumer } from '../domain/consumer.ts';
import { findMissingLeads } from '../usecases/change-feed.ts';
import { createConsumer, listConsumers, removeConsumer } from '../usecases/consumers.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { listSetAside, setAsideLeadChanges, takeBackLeadChanges } from '../usecases/set-aside.ts';
import { consumerNamed, mayAccess, readActor, readCaller, refuseConsumerOfOthers } from './callers.ts';
import { consumerStart, consumerToWire, setAsideFromWire, setAsideToWire } from './convert.ts';

/** The roles whose callers see all consumers. */
const SEE_ALL: readonly CallerRole[] = ['crm', 'operator', 'read'];

export function consumerService(deps: Dependencies): ServiceImpl<typeof ConsumerService> {
  return {
    async createConsumer({ consumer, start }, context) {
      const { name = '', studioIds = [], allStudios = false, includeTestStudios = false } = consumer ?? {};
      refuseConsumerOfOthers(readCaller(context), allStudios ? null : studioIds);
      const settings = { name, studioIds, allStudios, includeTestStudios, start: consumerStart.fromWire(start) };
      const created = await createConsumer(deps, { ...settings, ...readActor(context) }, context.signal);
      return { consumer: consumerToWire(created) };
    },

    async listConsumers(_, context) {
      const caller = readCaller(context);
      const hasAll = SEE_ALL.some((role) => caller.may.has(role));
      const isVisible = (consumer: Consumer) =>
        mayAccess(caller, consumer.studioIds) && (hasAll || caller.consumers.has(consumer.name));
      const listed = await listConsumers(deps, isVisible);
      return { consumers: listed.map(({ consumer, ...measured }) => consumerToWire(consumer, measured)) };
    },

    async removeConsumer({ consumer: name }, context) {
      const check = (consumer: Consumer) => refuseConsumerOfOthers(readCaller(context), consumer.studioIds);
      return { removed: await removeConsumer(deps, { name, ...readActor(context) }, check, context.signal) };
    },

    async setAsideLeadChanges({ consumer, leads }, context) {
      const named = await consumerNamed(deps, consumer, context);
      const { applied, superseded, unknown } = await setAsideLeadChanges(deps, named, leads.map(setAsideFromWire));
      return { setAsideCount: applied, supersededCount: superseded, unknownCount: unknown };
    },

    async takeBackLeadChanges({ consumer, ...which }, context) {
      const named = await consumerNamed(deps, consumer, context, ['crm', 'operator']);
      return takeBackLeadChanges(deps, named, { ...which, ...readActor(context) });
    },

    async listSetAsideLeadChanges({ consumer, ...page }, context) {
      const named = await consumerNamed(deps, consumer, context, SEE_ALL);
      const { leads, nextPageToken } = await listSetAside(deps, named, page);
      return { leads: leads.map(setAsideToWire), nextPageToken };
    },

    findMissingLeads: async (request) => ({ missingLeadIds: [...(await findMissingLeads(deps, request))] }),
  };
}
