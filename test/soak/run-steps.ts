import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { v7 } from 'uuid';
import { Refusal } from '../../src/domain/refusal.ts';
import type { Store } from '../../src/store/store.ts';
import { changeLeadStage } from '../../src/usecases/change-lead-stage.ts';
import { createLead } from '../../src/usecases/create-lead.ts';
import type { Dependencies } from '../../src/usecases/dependencies.ts';
import { getLead } from '../../src/usecases/get-lead.ts';
import { listLeads } from '../../src/usecases/list-leads.ts';
import { updateLead } from '../../src/usecases/update-lead.ts';
import { BY, NOW, plus, times } from '../support/builders.ts';
import { explanation, type Observation } from './explanation.ts';
import type { Model, Outcome, Request } from './lead-model.ts';
import { BODIES, CONTACTS, type Listing, type Operation, STUDIOS, type Step } from './operations.ts';

/** How far the clock of each process is behind that of the previous one; milliseconds. */
const SKEW_MS = 4;

/** Processes on the same data. */
export interface Processes {
  /** Returns the store of a process. */
  store(process: number): Store;
  /** Ends a process and restarts it. */
  reopen(process: number): Promise<void>;
}

/** The page read last from a studio: where it began, and its token. */
interface Page {
  readonly token: string;
  readonly after: { readonly studioId: string; readonly leadId: string };
}

/**
 * Runs steps, in new studios.
 *
 * @throws Error when no order of the requests explains the outcome of a step
 */
export async function runSteps(processes: Processes, steps: readonly Step[]): Promise<void> {
  const run = randomUUID();
  const studioIds = times(STUDIOS, (index) => `${run}-${index}`);
  for (const id of studioIds) await processes.store(0).putStudio({ id, status: 'active', regionCode: 'DE' }, BY);
  const pages = new Map<string, Page>();
  let model: Model = [];
  let now = NOW;

  const dependenciesOf = (process: number): Dependencies => {
    const moment = plus(now, -SKEW_MS * process);
    return { store: processes.store(process), clock: () => moment, newId: () => v7({ msecs: moment.getTime() }) };
  };

  async function perform(operation: Operation): Promise<Observation> {
    const dependencies = dependenciesOf(operation.process);
    if (operation.kind === 'create') {
      const { studio, key, otherContact, spelling, body } = operation;
      const person = (key + otherContact) % CONTACTS.length;
      const command = {
        studioId: studioIds[studio] as string,
        idempotencyKey: `00000000-0000-4000-8000-00000000000${key}`,
        contact: CONTACTS[person]?.[spelling],
        sourceId: undefined,
        note: undefined,
        ...(BODIES[body] as (typeof BODIES)[number]),
      };
      return observed({ kind: 'create', command, person }, () => createLead(dependencies, command));
    }
    const lead = model.at(-1 - (operation.lead % Math.max(model.length, 1)));
    const leadId = lead?.id ?? randomUUID();
    const own = lead?.studioId ?? studioIds[0];
    const studioId = studioIds.find((id) => (id !== own) === operation.ofAnother) as string;
    if (operation.kind === 'get') {
      const query = { studioId, leadId, view: 'full' } as const;
      return observed({ kind: 'get', studioId, leadId }, async () => ({ lead: await getLead(dependencies, query) }));
    }
    if (operation.kind === 'correct') {
      const { contact: person, spelling, body, isTimeExpected } = operation;
      const contact = CONTACTS[person]?.[spelling];
      const fields = { note: null, ...BODIES[body], ...(contact && { contact }) };
      const expectedUpdatedAt = isTimeExpected ? lead?.updatedAt : undefined;
      const target = { studioId, leadId, expectedUpdatedAt };
      return observed(
        {
          kind: 'correct',
          ...target,
          correction: fields,
          person: contact && person,
          now: dependencies.clock(),
        },
        async () => ({ lead: await updateLead(dependencies, { ...target, fields }) }),
      );
    }
    const { stage } = operation;
    return observed({ kind: 'move', studioId, leadId, stage, now: dependencies.clock() }, async () => ({
      lead: await changeLeadStage(dependencies, { studioId, leadId, stage }),
    }));
  }

  async function list({ process, studio, pageSize, after }: Listing): Promise<Observation> {
    const studioId = studioIds[studio] as string;
    const other = studioIds[1 - studio] as string;
    const page = after === 'nothing' ? undefined : pages.get(after === 'own page' ? studioId : other);
    return observed({ kind: 'list', studioId, pageSize, after: page?.after }, async () => {
      const query = { studioId, pageSize, pageToken: page?.token ?? '', view: 'full' } as const;
      const { leads, nextPageToken } = await listLeads(dependenciesOf(process), query);
      const leadId = leads.at(-1)?.id ?? '';
      if (nextPageToken !== '') pages.set(studioId, { token: nextPageToken, after: { studioId, leadId } });
      return { leads, hasMore: nextPageToken !== '' };
    });
  }

  for (const [index, step] of steps.entries()) {
    now = plus(now, step.clock);
    if (step.kind === 'reopen') {
      await processes.reopen(step.process);
      continue;
    }
    const observations = step.kind === 'list' ? [await list(step)] : await Promise.all(step.operations.map(perform));
    const known = explanation(model, observations);
    if (!known) {
      const story = inspect({ model, observations }, { depth: 6, breakLength: 120 });
      throw new Error(`nothing explains what came of step ${index}: ${story}`);
    }
    model = known;
  }
}

async function observed(request: Request, send: () => Promise<Outcome>): Promise<Observation> {
  try {
    return { request, outcome: await send() };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { leadId } = error.metadata;
    return { request, outcome: { refused: error.reason, ...(leadId !== undefined && { leadId }) } };
  }
}
