// Generated from sdk/outbox/page.html by sdk/generate-outbox-page.ts. Do not edit.

/** The headers of all its responses. */
export const HEADERS = {
  Allow: 'GET, HEAD, POST',
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'sha256-JQBp3BpCtZU0URUUIaBU0iwdBTEDF0gNm3vKNFk0Dbk='; style-src 'sha256-hbQwCyr5VHYZTU5s3YzeVUOcSVLNuoL4t6qrV0uKv44='; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex',
} as const;

/** The page of an outbox. */
export const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Leads of this website</title>
<style>
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #f3f5f7; --line: #c6ccd4; --quiet: #55606c; --main: #0b57d0; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --back: #15181c; --text: #e6e9ed; --soft: #1e2328; --line: #414a54; --quiet: #a9b2bd; --main: #8ab4f8; --bad: #f2b8b5; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { max-width: 52rem; margin: 0 auto; padding: 1rem; }
h1 { margin: 0; font-size: 1.5rem; }
h2 { margin: 2rem 0 .5rem; font-size: 1.2rem; }
h3 { margin: 0; font-size: 1rem; }
p { margin: .5rem 0; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between; }
#message { position: sticky; top: 0; margin: 0; background: var(--back); }
#message:not(:empty) { margin: .5rem 0; padding: .5rem .75rem; border: 1px solid var(--line); border-left: .3rem solid var(--main); border-radius: .4rem; }
#message.bad { border-left-color: var(--bad); }
article { margin: .75rem 0; padding: .75rem 1rem; border: 1px solid var(--line); border-radius: .6rem; background: var(--soft); }
.quiet { color: var(--quiet); font-size: .9rem; }
dl { display: grid; grid-template-columns: minmax(4rem, max-content) 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dt { color: var(--quiet); }
dd { margin: 0; min-width: 0; white-space: pre-wrap; unicode-bidi: isolate; }
button { min-height: 2.5rem; margin: .25rem .5rem .25rem 0; padding: 0 1rem; border: 1px solid var(--main); border-radius: .4rem; background: var(--back); color: var(--main); font: inherit; cursor: pointer; }
button.bad { border-color: var(--bad); color: var(--bad); }
button:disabled { opacity: .5; cursor: default; }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
h2:focus { outline: none; }
#question { font-weight: bold; }
table { width: 100%; border-collapse: collapse; table-layout: fixed; font-size: .9rem; }
th, td { padding: .4rem .5rem .4rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
dialog { width: min(28rem, calc(100% - 2rem)); border: 1px solid var(--line); border-radius: .6rem; background: var(--back); color: var(--text); }
dialog::backdrop { background: rgb(0 0 0 / .5); }
</style>
<main>
  <header><h1>Leads of this website</h1><button id="refresh" type="button">Refresh</button></header>
  <p id="message" role="status" aria-live="polite"></p>
  <noscript><p>This page needs JavaScript.</p></noscript>
  <div id="report" hidden>
    <section aria-labelledby="need">
      <h2 id="need" tabindex="-1">Leads that need attention</h2>
      <div id="entries"></div>
    </section>
    <section aria-labelledby="waits">
      <h2 id="waits">Waiting leads</h2>
      <div id="waiting"></div>
    </section>
    <section aria-labelledby="arrived">
      <h2 id="arrived">Has everything arrived?</h2>
      <div id="comparison"></div>
      <button id="compare" type="button">Compare</button>
    </section>
  </div>
</main>
<dialog id="confirm" aria-labelledby="question">
  <p id="question"></p>
  <p id="then"></p>
  <button id="erase" type="button" class="bad">Erase the data</button><button id="keep" type="button" autofocus>Keep it</button>
</dialog>
<script type="module">
const $ = (id) => document.getElementById(id);
const LABELS = new Map([['contact', 'Contact'], ['note', 'Message'], ['sourceId', 'Source']]);
const STATES = { refused: 'Refused', waiting: 'Waiting', already_open: 'Already open', delivered: 'Delivered' };
// Sentences by the beginnings of reasons. The text of a reason itself is for whoever runs the website.
const REASONS = Object.entries({
  '400 ': 'The service does not accept the data.',
  '401 ': 'The API key is no longer valid. Tell whoever runs the website.',
  '402 ': "The studio's access to the service is suspended. Tell whoever runs the website.",
  '403 ': 'The API key may not do this. Tell whoever runs the website.',
  '404 ': 'The address of the service may be wrong. Tell whoever runs the website.',
  '405 ': 'The address of the service may be wrong. Tell whoever runs the website.',
  '409 ': 'The service does not accept the lead, because its key was used before.',
  '429 ': 'The service has had too many requests, and asks for a pause.',
  '503 ': 'The service is temporarily unavailable.',
  wait: 'Something between this website and the service asks for a pause.',
  'no answer': 'The service does not answer.',
  already: 'This contact has an open lead.',
  replayed: 'The service has answered with an earlier lead.',
  unreadable: 'The data in the table cannot be read.',
  'half of the quota': 'The remaining requests of this minute are for new leads.',
  'the time is over': 'It takes several rounds.',
  'not tried yet': 'To be sent next.',
});
const UNREADABLE = 'Data that cannot be read';
let report;
let shownAt;

// A visitor's text only ever becomes the text of an element, never HTML.
function make(tag, text, more = {}, ...children) {
  const element = Object.assign(document.createElement(tag), { textContent: text }, more);
  element.append(...children);
  return element;
}

const toTime = (iso) => make('time', new Date(iso).toLocaleString(), { dateTime: iso });
const leads = (count) => (count === 1 ? '1 lead' : \`\${count} leads\`);
const toText = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const toName = ({ idempotencyKey, capture }) => (capture ? toText(capture.displayName ?? 'No name') : \`\${UNREADABLE}, \${idempotencyKey}\`);

const findSentence = (reason) => REASONS.find(([start]) => reason.startsWith(start))?.[1] ?? '';

/** Says what erasing a lead does. A worker may be sending it just now. */
function whatFollows({ state }) {
  if (state === 'waiting') return 'Its data is erased from this website, and it is not sent again. An attempt in flight may still arrive.';
  if (state === 'refused') return 'Its data is erased from this website, and it is not sent again. Nobody can bring it back.';
  return 'Its data is erased from this website. Nobody can bring it back.';
}

function whatToDo({ state, reason, capture, createdAt }) {
  if (capture === null) return 'What the visitor wrote cannot be read from the table. Ask whoever runs the website, before you discard it.';
  if (state === 'refused') return 'The service refused it, for the reason below. Send it again once that is corrected, or discard it.';
  if (state === 'already_open')
    return 'This contact had an open lead. The studio may not have got this message: read it, then erase it.';
  if (state === 'delivered') return 'The service answered with an earlier lead, so perhaps nobody got this one: read it, then erase it.';
  if (/^40[1-5] /.test(reason ?? ''))
    return 'It waits until somebody corrects the API key, the studio or the address of the service. Then it is sent automatically.';
  if (new Date(createdAt) > new Date())
    return 'The clock of the website was wrong when it was stored: tell whoever runs the website. It is sent automatically.';
  return 'It has waited for more than a day. It is sent automatically when the cause is gone.';
}

function makeArticle(entry) {
  const { idempotencyKey, state, createdAt, attempts, reason, capture } = entry;
  const name = toName(entry);
  const facts = Object.entries(capture ?? {}).flatMap(([field, value]) => {
    if (field === 'displayName' || value === null) return [];
    const text = field === 'contact' && value.value !== undefined ? toText(value.value) : toText(value);
    return [make('dt', LABELS.get(field) ?? field), make('dd', text, { dir: 'auto' })];
  });
  const again = make('button', 'Send again', { type: 'button', ariaLabel: \`Send again: \${name}\` });
  again.onclick = () => act({ action: 'retry', idempotencyKey }, () => \`It will be sent again: \${name}\`);
  const isSent = state === 'already_open' || state === 'delivered';
  const verb = isSent ? 'Seen: erase it' : 'Discard';
  const discard = make('button', verb, { type: 'button', className: 'bad', ariaLabel: \`\${verb}: \${name}\` });
  discard.onclick = async () => {
    if (await isConfirmed(\`\${isSent ? 'Erase' : 'Discard'} the lead \${name}?\`, whatFollows(entry)))
      act({ action: 'discard', idempotencyKey }, () => \`\${isSent ? 'Erased' : 'Discarded'}: \${name}\`);
  };
  return make('article', '', {},
    make('h3', name, { dir: 'auto' }),
    make('p', \`\${STATES[state] ?? state}, \${attempts === 1 ? '1 attempt' : \`\${attempts} attempts\`}, stored \`, {}, toTime(createdAt)),
    make('p', whatToDo(entry)),
    make('p', reason === null ? (attempts === 0 ? 'It was not tried yet.' : 'It waits to be tried again.') : findSentence(reason)),
    ...(reason === null ? [] : [make('p', \`Reason: \${reason}\`, { className: 'quiet' })]),
    make('dl', '', {}, ...facts),
    ...(capture === null || isSent ? [] : [again]), discard);
}

function show() {
  const { needsAttention: { count, entries }, waiting, comparison, mayCompare } = report;
  $('entries').replaceChildren(
    make('p', count === 0 ? 'Nothing. No lead needs attention.' : count === 1 ? '1 lead needs attention.' : \`\${count} leads need attention, oldest first.\`),
    ...entries.map(makeArticle),
    ...(count > entries.length ? [make('p', \`These are the oldest \${entries.length}. The others appear when these are done.\`)] : []));
  const isOne = waiting.count === 1;
  $('waiting').replaceChildren(
    ...(waiting.count === 0
      ? [make('p', 'Nothing. Every lead was sent, or needs attention.')]
      : [
          make('p', \`\${leads(waiting.count)} \${isOne ? 'waits' : 'wait'} to be sent, the oldest since \`, {}, toTime(waiting.since)),
          make('ul', '', {}, ...Object.entries(waiting.reasons).map(([reason, number]) => make('li', \`\${number}: \${findSentence(reason) || reason} \`, {}, ...(reason === 'not tried yet' ? [] : [make('small', reason, { className: 'quiet' })])))),
          make('p', 'A program of the website sends them automatically. If there are more each time, ask whoever runs the website whether it is running.', { className: 'quiet' }),
        ]));
  $('comparison').replaceChildren(...(comparison ? comparedParts(comparison) : [make('p', 'Nothing was compared yet.')]),
    ...(mayCompare ? [] : [make('p', 'Comparing is not set up here. The manual of this page says what that takes.')]));
  $('compare').hidden = !mayCompare;
  $('compare').textContent = comparison && !comparison.isComplete ? 'Continue' : 'Compare';
  $('report').hidden = false;
  shownAt = new Date();
}

function comparedParts({ summary, startedAt, differences }) {
  const parts = [make('p', summary), make('p', 'Compared on ', { className: 'quiet' }, toTime(startedAt))];
  if (differences.length === 0) return parts;
  const rows = differences.map(({ idempotencyKey, leadId, state, reason, createdAt }) =>
    make('tr', '', {}, make('td', \`\${STATES[state] ?? state}, lead \${leadId}, key \${idempotencyKey}\`), make('td', '', {}, toTime(createdAt)), make('td', reason)));
  const heads = ['Lead', 'Stored', 'What it may mean'].map((head) => make('th', head, { scope: 'col' }));
  parts.push(make('table', '', {}, make('caption', 'What differs'), make('thead', '', {}, make('tr', '', {}, ...heads)), make('tbody', '', {}, ...rows)));
  if (differences.length === 100) parts.push(make('p', 'There may be more: these are the newest.'));
  return parts;
}

function isConfirmed(question, then) {
  $('question').textContent = question;
  $('then').textContent = then;
  $('confirm').showModal();
  return new Promise((resolve) => {
    $('confirm').onclose = () => resolve(false);
    $('erase').onclick = () => { resolve(true); $('confirm').close(); };
    $('keep').onclick = () => $('confirm').close();
  });
}

function say(text, isBad = false) {
  $('message').textContent = text;
  $('message').className = isBad ? 'bad' : '';
}

/** Sends a request to the page's own address; returns a sentence when that fails, and hides the leads from anyone not signed in. */
async function ask(request) {
  // Leaves out a password in the address, which fetch refuses.
  const own = location.origin + location.pathname + location.search;
  const response = await fetch(own, request).catch(() => undefined);
  if (response === undefined) return 'The website does not answer. Check your connection, then refresh.';
  const answer = await response.json().catch(() => ({}));
  if (response.ok && answer.needsAttention) { report = answer; return; }
  // Only the page's own errors are sentences. Frameworks have others, such as "Bad Request".
  if (typeof answer.error === 'string' && answer.error.endsWith('.')) return answer.error;
  if (response.status === 401 || response.status === 403 || response.ok) {
    $('report').hidden = true;
    return 'You are no longer signed in, or may not use this page. Load it again, and sign in.';
  }
  return \`The website has failed (\${response.status}), perhaps because its database does not answer. Refresh in a minute; if it fails again, ask whoever runs the website.\`;
}

function compared() {
  const { isComplete, stoppedBecause } = report.comparison;
  if (isComplete) return 'Compared.';
  return \`Not finished. \${findSentence(stoppedBecause) || 'It was stopped.'} Continue in a minute.\`;
}

async function act(body, done, busy = 'Working …') {
  const buttons = [...document.querySelectorAll('main button')];
  const focused = document.activeElement;
  for (const button of buttons) button.disabled = true;
  say(busy);
  const headers = { Accept: 'application/json', ...(body && { 'Content-Type': 'application/json', 'X-Outbox-Page': '1' }) };
  const key = body?.idempotencyKey;
  let problem = await ask({ headers, cache: 'no-store', ...(body && { method: 'POST', body: JSON.stringify(body) }) });
  const isNew = problem === undefined || (key !== undefined && (await ask({ headers, cache: 'no-store' })) === undefined);
  for (const button of buttons) button.disabled = false;
  if (isNew) {
    if (problem !== undefined && !report.needsAttention.entries.some(({ idempotencyKey }) => idempotencyKey === key))
      problem = 'In the meantime, this lead was sent, or somebody discarded it.';
    show();
  } else if (!$('report').hidden)
    problem += \` What you see is as of \${shownAt.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}.\`;
  say(problem ?? done(), problem !== undefined);
  if (focused !== document.body) (focused.isConnected ? focused : $('need')).focus();
}

$('refresh').onclick = () => act(undefined, () => 'Up to date.', 'Loading …');
$('compare').onclick = () => act({ action: 'compare' }, compared, 'Comparing, which takes about half a minute at most …');
act(undefined, () => '', 'Loading …');
</script>
</html>
`;
