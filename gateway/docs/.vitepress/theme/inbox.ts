import { onMounted, onUnmounted, reactive } from 'vue';
import type { PublicLead } from '../../../../common/rules/public-api.ts';
import { ask, type Fault, type Quota, toFault } from './public-api.ts';

/** How often the page polls for new leads: often after a lead has arrived, rarely while none arrives; milliseconds. */
const POLL_MS = { min: 2000, max: 30_000 };

/** The share of the quota that the page leaves to others. */
const LEFT_TO_OTHERS = 0.5;

/** An inbox as it is shown. Only this object holds the key, not the address or the browser's storage. */
export interface Inbox {
  apiKey: string;
  isOpen: boolean;
  leads: PublicLead[];
  /** The cursor of older leads. */
  older: string | null;
  quota: Quota | undefined;
  fault: Fault | undefined;
  now: number;
}

interface Page {
  readonly leads: PublicLead[];
  readonly nextCursor: string | null;
}

/** Returns the state of the inbox, and a reader's actions. It polls while its component is on the page. */
export function useInbox() {
  const inbox: Inbox = reactive({
    apiKey: '',
    isOpen: false,
    leads: [],
    older: null,
    quota: undefined,
    fault: undefined,
    now: Date.now(),
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  let waitMs = POLL_MS.min;
  /** Aborts the requests of a reader who has closed the inbox or opened it anew. */
  let reader = new AbortController();

  /** Reads a page of leads. If that fails, shows the fault and returns undefined. */
  async function read(query: string): Promise<Page | undefined> {
    const { signal } = reader;
    const answer = await ask(query, inbox.apiKey, { signal }).catch(() => undefined);
    if (signal.aborted) return undefined;
    inbox.now = Date.now();
    inbox.quota = answer?.quota ?? inbox.quota;
    inbox.fault = answer?.status === 200 ? undefined : toFault(answer);
    return answer?.status === 200 ? (answer.body as Page) : undefined;
  }

  async function poll(): Promise<void> {
    const { signal } = reader;
    const page = document.hidden ? undefined : await read('');
    if (signal.aborted) return;
    if (page) {
      inbox.isOpen = true;
      waitMs = merge(inbox, page) ? POLL_MS.min : Math.min(waitMs * 1.5, POLL_MS.max);
    }
    if (inbox.fault && inbox.fault.retrySeconds === undefined) return;
    timer = setTimeout(poll, Math.max(waitMs, waitForQuota(inbox.quota), (inbox.fault?.retrySeconds ?? 0) * 1000));
  }

  function endReader(): void {
    clearTimeout(timer);
    reader.abort();
    reader = new AbortController();
  }

  async function open(): Promise<void> {
    endReader();
    waitMs = POLL_MS.min;
    await poll();
  }

  async function loadOlder(): Promise<void> {
    const cursor = inbox.older;
    const page = await read(`?cursor=${cursor}`);
    // So many leads may have arrived meanwhile that the list was replaced.
    if (!page || cursor !== inbox.older) return;
    inbox.leads.push(...page.leads);
    inbox.older = page.nextCursor;
  }

  /** Forgets the key and the leads. */
  function close(): void {
    endReader();
    Object.assign(inbox, { apiKey: '', isOpen: false, leads: [], older: null, quota: undefined, fault: undefined });
  }

  onMounted(() => {
    const [, apiKey] = /^#key=(.+)$/.exec(location.hash) ?? [];
    if (!apiKey) return;
    // Keeps the key out of the history and bookmarks.
    history.replaceState(history.state, '', location.pathname);
    inbox.apiKey = apiKey;
    void open();
  });
  onUnmounted(close);
  return { inbox, open, loadOlder, close };
}

/** Puts the newest page before the shown leads. Returns whether it contains a new lead. */
function merge(inbox: Inbox, { leads, nextCursor }: Page): boolean {
  const shown = new Set(inbox.leads.map(({ id }) => id));
  const isKnown = ({ id }: PublicLead) => shown.has(id);
  const ids = new Set(leads.map(({ id }) => id));
  const rest = inbox.leads.filter(({ id }) => !ids.has(id));
  // More than a page of leads has arrived, so some may be missing between this page and the shown leads.
  const hasGap = !leads.some(isKnown) && nextCursor !== null;
  inbox.leads = hasGap ? leads : [...leads, ...rest];
  if (hasGap || shown.size === 0) inbox.older = nextCursor;
  return !leads.every(isKnown);
}

/** Returns how long to wait so that a share of the window's requests is left to others; milliseconds. */
const waitForQuota = (quota: Quota | undefined): number =>
  quota && quota.left < quota.limit * LEFT_TO_OTHERS ? quota.endsAt - Date.now() : 0;

export const formatStage = ({ stage }: PublicLead): string => stage.replace('_', ' ');

const formatTime = (time: string): string => new Date(time).toLocaleString('en-GB');

/** Returns the names and values of a lead's properties, as a reader sees them. */
export const describeLead = (lead: PublicLead): (readonly [string, string])[] => [
  ['Name', lead.displayName],
  ['Contact', 'in the CRM only: the API does not return it'],
  ['Stage', formatStage(lead)],
  ['Note', lead.note ?? 'none'],
  ['Source', lead.sourceId ?? 'none'],
  ['Received', formatTime(lead.createdAt)],
  ['Changed', formatTime(lead.updatedAt)],
  ['Id', lead.id],
];

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

/** Returns how long ago a time was, such as `5 minutes ago`. */
export function formatAge(time: string, now: number): string {
  const seconds = Math.min(0, (Date.parse(time) - now) / 1000);
  const [unit, size] = UNITS.find(([, size]) => -seconds >= size) ?? ['second', 1];
  return RELATIVE.format(Math.round(seconds / size), unit);
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;
