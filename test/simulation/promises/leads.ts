import type { LeadStage } from '../../../src/domain/lead.ts';
import { type Region, sameness } from '../contacts.ts';
import type { FinalLead } from '../final-state.ts';
import { conflictingLeadId, type Event, type EventOf, isOpen, type SentLead } from '../history.ts';
import { explain, type Observed } from './linearizable.ts';

/** The parts of a lead that determine the possible responses: its creation and its current state. */
interface KnownLead {
  readonly sent: SentLead;
  readonly stage: LeadStage;
  readonly contact: SentLead['contact'];
}

type Leads = ReadonlyMap<string, KnownLead>;

/** The final state of a studio. */
export interface FinalStudio {
  readonly studioId: string;
  /** Every region that it may have had. */
  readonly regions: readonly Region[];
  readonly leads: readonly FinalLead[];
}

/**
 * Checks all responses about the leads of a studio, and the final leads, against the contract. There must be an order of all
 * operations in which each key has one lead, each contact has at most one open lead, each response is correct at its moment,
 * and no acknowledged change is lost.
 *
 * @returns the violations, and the groups of observations that were too large to check, as text
 */
export function leadViolations(
  events: readonly Event[],
  { studioId, regions, leads }: FinalStudio,
): { readonly violations: readonly string[]; readonly unknown: readonly string[] } {
  const own = events.filter((event) => 'studioId' in event && event.studioId === studioId);
  const model = new LeadModel(regions, leads, own);
  const observed = own.flatMap((event) => model.observed(event) ?? []);
  const violations: string[] = [...model.violations];
  const unknown: string[] = [];
  for (const group of connected(observed, model)) {
    const verdict = explain(
      group.map(({ observed }) => observed),
      new Map() as Leads,
      describeState,
    );
    if (verdict.is === 'unexplained')
      violations.push(`no order explains the answers of ${studioId}: ${verdict.report}`);
    if (verdict.is === 'given up') unknown.push(`${group.length} observations of ${studioId}`);
  }
  return { violations, unknown };
}

const IDS = new WeakMap<Leads, string>();

/** Describes a state. The text is cached, because states are immutable and many operations do not change them. */
function describeState(leads: Leads): string {
  const known = IDS.get(leads);
  if (known !== undefined) return known;
  const lines = [...leads].map(
    ([id, { sent, stage, contact }]) => `  ${id} ${stage} (${contact.value}, key ${sent.idempotencyKey})`,
  );
  const id = lines.sort().join('\n');
  IDS.set(leads, id);
  return id;
}

/** An observation, and the names of the keys, contacts and leads that it is about. */
interface About {
  readonly about: readonly string[];
  readonly observed: Observed<Leads>;
}

class LeadModel {
  readonly violations: string[] = [];
  readonly #regions: readonly Region[];
  /** The lead of each key, as acknowledged by its creation or by the final state. */
  readonly #made = new Map<string, { readonly id: string; readonly sent: SentLead }>();
  /** The names of the key of each lead, and of every contact that it may have had. */
  readonly #about = new Map<string, Set<string>>();

  constructor(regions: readonly Region[], leads: readonly FinalLead[], events: readonly Event[]) {
    this.#regions = regions;
    const keys = new Set(leads.map(({ idempotencyKey }) => idempotencyKey));
    if (keys.size < leads.length) this.violations.push(`there are ${leads.length} leads of ${keys.size} keys`);
    for (const event of events) {
      if (event.kind === 'change' && event.contact) this.#aboutLead(event.leadId).add(contactName(event.contact));
      if (event.kind !== 'request' || event.operation.name !== 'create' || event.answer?.status !== 201) continue;
      const { lead: sent } = event.operation;
      const { id } = JSON.parse(event.answer.text).lead;
      this.#made.set(sent.idempotencyKey, { id, sent });
      this.#aboutLead(id).add(keyName(sent.idempotencyKey)).add(contactName(sent.contact));
    }
  }

  observed(event: Event): About[] | undefined {
    switch (event.kind) {
      case 'request':
        return this.#ofRequest(event);
      case 'change':
        return [this.#ofChange(event)];
      case 'leadRead':
        return [this.#ofRead(event, event.leadId, event.stage, event.contact)];
      case 'found':
        return [this.#ofFound(event)];
      default:
        return undefined;
    }
  }

  /** Whether two contacts may be the same. */
  areRelated(a: SentLead['contact'], b: SentLead['contact']): boolean {
    return sameness(a, b, this.#regions) !== 'never';
  }

  #ofRequest(event: EventOf<'request'>): About[] {
    const { operation, answer } = event;
    if (operation.name === 'create') return this.#ofCreation(event, operation.lead);
    if (operation.name === 'get') {
      if (answer?.status === 200) return [this.#ofRead(event, operation.leadId, JSON.parse(answer.text).lead.stage)];
      return answer?.status === 404 ? [this.#ofAbsence(event, operation.leadId)] : [];
    }
    if (answer?.status !== 200) return [];
    return JSON.parse(answer.text).leads.map((lead: { id: string; stage: LeadStage }) =>
      this.#ofRead(event, lead.id, lead.stage),
    );
  }

  #ofCreation(event: EventOf<'request'>, sent: SentLead): About[] {
    const { answer, span } = event;
    const key = keyName(sent.idempotencyKey);
    const about = [key, contactName(sent.contact)];
    const response = answer ? `${answer.status} ${answer.code ?? answer.text}` : 'no response';
    const description = `${sent.idempotencyKey} for ${sent.contact.value} (${sent.displayName}) gets ${response}`;
    const is = (next: Observed<Leads>['next'], of = about): About[] => [
      { about: of, observed: { span, description, guess: undefined, isRead: answer?.status !== 201, next } },
    ];
    if (answer?.status === 201) {
      const { id } = JSON.parse(answer.text).lead;
      const isFirst = !answer.headers.has('idempotent-replayed');
      return is((leads) => {
        const found = findByKey(leads, sent);
        if (found) return !isFirst && found[0] === id && isSameData(found[1].sent, sent) ? leads : undefined;
        return isFirst ? this.#created(leads, id, sent) : undefined;
      });
    }
    switch (answer?.code) {
      case 'integration_idempotency_conflict':
        return is(
          (leads) => {
            const found = findByKey(leads, sent);
            return found && !isSameData(found[1].sent, sent) ? leads : undefined;
          },
          [key],
        );
      case 'integration_lead_already_open': {
        const link = conflictingLeadId(answer);
        return is((leads) => {
          if (findByKey(leads, sent)) return undefined;
          const conflicting = this.#openFor(leads, sent.contact, 'possibly');
          return conflicting.length > 0 && (!link || conflicting.includes(link)) ? leads : undefined;
        });
      }
      case 'integration_source_invalid':
        return is(
          (leads) => {
            const found = findByKey(leads, sent);
            return found && isSameData(found[1].sent, sent) ? undefined : leads;
          },
          [key],
        );
      case undefined:
      case 'integration_unavailable':
      case 'internal_error':
        return this.#ofUnknown(event, sent, about, description);
      default:
        return [];
    }
  }

  /** Observes an unknown outcome: if a lead of this key and data was ever acknowledged, this request may have created it. */
  #ofUnknown(event: EventOf<'request'>, sent: SentLead, about: string[], description: string): About[] {
    const made = this.#made.get(sent.idempotencyKey);
    if (!made || !isSameData(made.sent, sent) || event.wroteNothing) return [];
    const next = (leads: Leads) => (findByKey(leads, sent) ? leads : this.#created(leads, made.id, sent));
    const span = { ...event.span, end: Number.POSITIVE_INFINITY };
    return [{ about, observed: { span, description, guess: `make ${made.id}`, isRead: false, next } }];
  }

  #created(leads: Leads, id: string, sent: SentLead): Leads | undefined {
    if (leads.has(id) || this.#openFor(leads, sent.contact, 'surely').length > 0) return undefined;
    return new Map(leads).set(id, { sent, stage: 'new', contact: sent.contact });
  }

  #ofChange({ span, leadId, stage, contact, outcome }: EventOf<'change'>): About {
    const to = stage ?? `${contact?.value}`;
    const description = `${leadId} is changed to ${to}, with outcome ${JSON.stringify({ ...outcome, answer: undefined })}`;
    const guess = 'unknown' in outcome ? `change ${leadId} to ${to}` : undefined;
    const next = (leads: Leads): Leads | undefined => {
      const lead = leads.get(leadId);
      if (!lead) return undefined;
      const after = { ...lead, ...(stage && { stage }), ...(contact && { contact }) };
      const takesContact = isOpen(after.stage) && (contact !== undefined || !isOpen(lead.stage));
      const rivals = (how: 'surely' | 'possibly') =>
        takesContact ? this.#openFor(leads, after.contact, how).filter((id) => id !== leadId) : [];
      if ('refused' in outcome) {
        const possible = rivals('possibly');
        const isCorrect = outcome.refused === 'LEAD_ALREADY_OPEN' && possible.length > 0;
        return isCorrect && (!outcome.leadId || possible.includes(outcome.leadId)) ? leads : undefined;
      }
      if (rivals('surely').length > 0) return undefined;
      const isSame = after.stage === lead.stage && after.contact.value === lead.contact.value;
      return isSame ? leads : new Map(leads).set(leadId, after);
    };
    const about = [...this.#aboutLead(leadId)];
    return { about, observed: { span, description, guess, isRead: 'refused' in outcome, next } };
  }

  #ofRead({ span, party }: Event, leadId: string, stage: LeadStage, contact?: SentLead['contact']): About {
    const next = (leads: Leads) => {
      const lead = leads.get(leadId);
      return lead?.stage === stage && (!contact || lead.contact.value === contact.value) ? leads : undefined;
    };
    const description = `the ${party} reads ${leadId} as ${stage} ${contact?.value ?? ''}`;
    return this.#read(span, [...this.#aboutLead(leadId)], description, next);
  }

  /** Observes that the leads found for a contact are complete, and belong to no other contact. */
  #ofFound({ span, contact, regions, leadIds, isWhole }: EventOf<'found'>): About {
    const next = (leads: Leads) => {
      const isCorrect = [...leads].every(([id, lead]) => {
        if (leadIds.includes(id)) return this.areRelated(lead.contact, contact);
        if (!isWhole) return true;
        // A number with a country code is found by a local one in each region that the studio has had.
        const isSameIn = (region: Region) => sameness(lead.contact, contact, [region]) === 'surely';
        if (lead.contact.value.startsWith('+') && regions.some(isSameIn)) return false;
        return sameness(lead.contact, contact, this.#regions) !== 'surely';
      });
      return isCorrect && leadIds.every((id) => leads.has(id)) ? leads : undefined;
    };
    const about = [contactName(contact), ...leadIds.flatMap((id) => [...this.#aboutLead(id)])];
    return this.#read(span, about, `the leads of ${contact.value} are ${leadIds.join(', ')}`, next);
  }

  #ofAbsence({ span, party }: Event, leadId: string): About {
    const next = (leads: Leads) => (leads.has(leadId) ? undefined : leads);
    return this.#read(span, [...this.#aboutLead(leadId)], `the ${party} does not find ${leadId}`, next);
  }

  #read(span: Event['span'], about: readonly string[], description: string, next: Observed<Leads>['next']): About {
    return { about, observed: { span, description, guess: undefined, isRead: true, next } };
  }

  #openFor(leads: Leads, contact: SentLead['contact'], how: 'surely' | 'possibly'): string[] {
    return [...leads]
      .filter(([, lead]) => {
        const same = sameness(lead.contact, contact, this.#regions);
        return isOpen(lead.stage) && (same === 'surely' || same === how);
      })
      .map(([id]) => id);
  }

  #aboutLead(leadId: string): Set<string> {
    const about = this.#about.get(leadId) ?? new Set([`lead ${leadId}`]);
    this.#about.set(leadId, about);
    return about;
  }
}

const keyName = (key: string): string => `key ${key}`;
const contactName = ({ type, value }: SentLead['contact']): string => `contact ${type} ${value}`;

const findByKey = (leads: Leads, { idempotencyKey }: SentLead): [string, KnownLead] | undefined =>
  [...leads].find(([, { sent }]) => sent.idempotencyKey === idempotencyKey);

function isSameData(a: SentLead, b: SentLead): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Groups observations that share a key, lead or contact: each group can be checked separately. */
function connected(all: readonly About[], model: LeadModel): About[][] {
  const groups = new Map<string, About[]>();
  const find = (name: string): string => {
    const parent = parents.get(name);
    if (parent === undefined || parent === name) return name;
    const root = find(parent);
    parents.set(name, root);
    return root;
  };
  const parents = new Map<string, string>();
  const join = (a: string, b: string) => parents.set(find(a), find(b));
  for (const { about } of all) for (const name of about) join(name, about[0] as string);
  const contacts = [...new Set(all.flatMap(({ about }) => about.filter((name) => name.startsWith('contact '))))];
  const findContact = (name: string) => {
    const [, type, ...rest] = name.split(' ');
    return { type: type as 'email' | 'phone', value: rest.join(' ') };
  };
  for (const [index, a] of contacts.entries()) {
    for (const b of contacts.slice(index + 1)) if (model.areRelated(findContact(a), findContact(b))) join(a, b);
  }
  for (const each of all) {
    const root = find(each.about[0] as string);
    groups.set(root, [...(groups.get(root) ?? []), each]);
  }
  return [...groups.values()];
}
