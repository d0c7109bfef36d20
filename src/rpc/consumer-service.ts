import type { ServiceImpl } from '@connectrpc/connect';
import type { ConsumerService } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import type { CallerRole } from '../domain/caller.ts';
import type { Consumer } from '../domain/consumer.ts';
import { createConsumer, listConsumers, removeConsumer } from '../usecases/consumers.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { callerOf, mayAccess, refuseConsumerOfOthers } from './callers.ts';
import { consumerStart, consumerToWire } from './convert.ts';

/** The roles with which a caller sees other consumers than its own. */
const SEE_ALL: readonly CallerRole[] = ['crm', 'operator', 'read'];

export function consumerService(deps: Dependencies): ServiceImpl<typeof ConsumerService> {
  return {
    async createConsumer({ consumer, start }, context) {
      const { name = '', studioIds = [], allStudios = false, includeTestStudios = false } = consumer ?? {};
      refuseConsumerOfOthers(callerOf(context), { studioIds: allStudios ? null : studioIds });
      const command = { name, studioIds, allStudios, includeTestStudios, start: consumerStart.fromWire(start) };
      const created = await createConsumer(deps, command, context.signal);
      return { consumer: consumerToWire({ consumer: created }) };
    },

    async listConsumers(_, context) {
      const caller = callerOf(context);
      const hasAll = SEE_ALL.some((role) => caller.may.has(role));
      const isVisible = (consumer: Consumer) =>
        mayAccess(caller, consumer) && (hasAll || caller.consumers.has(consumer.name));
      return { consumers: (await listConsumers(deps, isVisible)).map(consumerToWire) };
    },

    async removeConsumer({ consumer: name }, context) {
      const check = (consumer: Consumer) => refuseConsumerOfOthers(callerOf(context), consumer);
      return { removed: await removeConsumer(deps, name, check, context.signal) };
    },
  };
}
