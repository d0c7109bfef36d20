import { v4 as newUuid } from 'uuid';
import { onMounted, reactive } from 'vue';
import { type Answer, ask, leadsPath } from './public-api.ts';

/** A creation and its outcome, as the page shows them. */
export interface Attempt {
  readonly what: string;
  readonly request: string;
  readonly response: string;
}

/** The headers of a response that matter for a creation. */
const SHOWN_HEADERS = ['Location', 'Idempotent-Replayed', 'Link', 'Retry-After'];

/**
 * Returns a form for a first lead, the requests that it can send, and their outcomes.
 *
 * @param sent called after each request
 */
export function useFirstLead(sent: () => void) {
  const form = reactive({ displayName: 'Katherine Johnson', email: '', key: '' });
  const attempts = reactive<Attempt[]>([]);
  // Chosen in the browser, because all readers share the built page.
  onMounted(() => {
    form.email = newAddress();
  });

  async function send(what: string, apiKey: string, changes: Partial<typeof form> = {}): Promise<void> {
    const { displayName, email, key } = { ...form, ...changes };
    const body = JSON.stringify({ displayName, contact: { type: 'email', value: email } });
    const headers = { 'content-type': 'application/json', 'idempotency-key': key };
    const answer = await ask('', apiKey, { method: 'POST', body, headers }).catch(() => undefined);
    const request = `POST ${leadsPath()}\nIdempotency-Key: ${key}\n\n${body}`;
    attempts.unshift({ what, request, response: answer ? describe(answer) : 'The service does not answer.' });
    sent();
  }

  return {
    form,
    attempts,
    /** Sends the form with a new idempotency key. The other three functions vary that request. */
    sendFirst(apiKey: string): Promise<void> {
      form.key = newUuid();
      return send('Send', apiKey);
    },
    sendAgain: (apiKey: string) => send('Send it again', apiKey),
    sendChanged: (apiKey: string) =>
      send('Change the name, same key', apiKey, { displayName: `${form.displayName} Goble` }),
    sendSamePerson: (apiKey: string) => send('Same person, new key', apiKey, { key: newUuid() }),
  };
}

function describe({ status, headers, body }: Answer): string {
  const shown = SHOWN_HEADERS.filter((name) => headers.has(name)).map((name) => `${name}: ${headers.get(name)}`);
  return [`HTTP ${status}`, ...shown, '', JSON.stringify(body, null, 2)].join('\n');
}

/** Returns an address that no other reader's lead has. */
const newAddress = (): string => `katherine-${newUuid().slice(0, 8)}@example.com`;
