// What pages have beside their text: a search, tabs of languages, and buttons that copy. Without it, all text is there.

// The docs may be served under a prefix.
const root = new URL('../../', import.meta.url);

for (const code of document.querySelectorAll('.page pre')) addCopyButton(code);
for (const [index, group] of document.querySelectorAll('.samples').entries()) addTabs(group, index);
addSearch(document.querySelector('form[role="search"]'));

/** @param {HTMLPreElement} code */
function addCopyButton(code) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    const isCopied = await copied(code.querySelector('code') ?? code);
    button.textContent = isCopied ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, 2000);
  });
  const block = document.createElement('div');
  block.className = 'block';
  code.replaceWith(block);
  block.append(code, button);
}

/** Copies the text of an element, or else selects it. The clipboard exists only on pages that came over TLS or from this computer. */
async function copied(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection()?.selectAllChildren(element);
    return document.execCommand('copy');
  }
}

/** Shows one sample of a group at a time: of the language that was chosen last, on any page. */
function addTabs(group, index) {
  const samples = [...group.querySelectorAll('figure')];
  const list = document.createElement('div');
  list.setAttribute('role', 'tablist');
  list.setAttribute('aria-label', 'Language');
  const tabs = samples.map((sample, place) => {
    const tab = document.createElement('button');
    tab.type = 'button';
    tab.textContent = readLanguage(sample);
    tab.setAttribute('role', 'tab');
    tab.id = `tab-${index}-${place}`;
    sample.id = `sample-${index}-${place}`;
    tab.setAttribute('aria-controls', sample.id);
    sample.setAttribute('role', 'tabpanel');
    sample.setAttribute('aria-labelledby', tab.id);
    sample.querySelector('figcaption').hidden = true;
    tab.addEventListener('click', () => choose(tab.textContent));
    return tab;
  });
  list.addEventListener('keydown', ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (step === undefined) return;
    const next = tabs.at((tabs.indexOf(document.activeElement) + step) % tabs.length);
    next.focus();
    next.click();
  });
  list.append(...tabs);
  group.prepend(list);
  show(group, remembered());
}

function choose(language) {
  try {
    localStorage.setItem('language', language);
  } catch {
    // Where nothing may be stored, the choice holds for this page.
  }
  for (const group of document.querySelectorAll('.samples')) show(group, language);
}

function remembered() {
  try {
    return localStorage.getItem('language');
  } catch {
    return null;
  }
}

function show(group, language) {
  const samples = [...group.querySelectorAll('figure')];
  const shown = samples.find((sample) => readLanguage(sample) === language) ?? samples[0];
  for (const sample of samples) {
    const isShown = sample === shown;
    sample.hidden = !isShown;
    const tab = document.getElementById(sample.getAttribute('aria-labelledby'));
    tab.setAttribute('aria-selected', String(isShown));
    tab.tabIndex = isShown ? 0 : -1;
  }
}

function readLanguage(sample) {
  return sample.querySelector('figcaption').textContent;
}

/** What the pages say for a word that they do not have, or seldom. */
const SYNONYMS = {
  captcha: ['honeypot'],
  delete: ['erase', 'discard'],
  express: ['node'],
  gdpr: ['personal data and erase', 'erased'],
  honeypot: ['captcha'],
  javascript: ['typescript'],
  nextjs: ['next.js'],
  privacy: ['personal data and erase', 'erased'],
  react: ['next.js'],
  sandbox: ['try it out', 'trying'],
  spam: ['captcha', 'honeypot'],
  wp: ['wordpress'],
};

/** How often a search shows sections with the same title, such as "Example". */
const SAME_TITLES = 3;

/** Shows the sections that have every word of the query, or else most of them. */
function addSearch(form) {
  const input = form.querySelector('input');
  const results = form.querySelector('ul');
  let sections;
  const search = async () => {
    try {
      sections ??= await sectionsToSearch();
    } catch {
      results.replaceChildren(item('The search does not answer. Please try again.'));
      return;
    }
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const { found, hasAll } = find(sections, words);
    results.replaceChildren(...found.map((each) => createResult(each, words)));
    if (words.length > 0 && !hasAll) results.prepend(item('Nothing has all of these words.'));
  };
  input.addEventListener('input', search);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    await search();
    results.querySelector('a')?.click();
  });
  form.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape') return;
    input.value = '';
    results.replaceChildren();
    input.focus();
  });
  // A link to a section of this page leaves the search open otherwise.
  results.addEventListener('click', () => results.replaceChildren());
  form.hidden = false;
}

async function sectionsToSearch() {
  const answer = await fetch(new URL('docs/search.json', root));
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.json();
}

function find(sections, words) {
  const forms = words.map((word) => [word, ...(SYNONYMS[word] ?? [])]);
  const rated = sections
    .map((section) => ({ section, ratings: forms.map((each) => rateSection(section, each)) }))
    .map(({ section, ratings }) => ({
      section,
      had: ratings.filter((rating) => rating > 0).length,
      rating: ratings.reduce((sum, rating) => sum + rating, 0),
    }));
  const most = Math.max(0, ...rated.map(({ had }) => had));
  const seen = {};
  const found = rated
    .filter(({ had }) => had > 0 && had === most)
    .sort((a, b) => b.rating - a.rating)
    .map(({ section }) => section)
    .filter(({ title }) => {
      seen[title] = (seen[title] ?? 0) + 1;
      return seen[title] <= SAME_TITLES;
    })
    .slice(0, 12);
  return { found, hasAll: most === words.length };
}

/** How well a section fits a word, in any of its forms; 0 if it does not have it. A status leads to the pages of its problems. */
function rateSection({ path, page, title, text }, forms) {
  const rate = (where, whole, part) =>
    Math.max(...forms.map((word) => (isWordIn(where, word) ? whole : where.toLowerCase().includes(word) ? part : 0)));
  const isStatus =
    path.startsWith('/docs/problems/') && new RegExp(`, status ${forms[0].replace(/\D/g, '-')} `).test(text);
  return rate(title, 9, 3) + rate(page, 4, 2) + rate(text, 2, 1) + (isStatus ? 50 : 0);
}

function isWordIn(text, word) {
  return ` ${text.toLowerCase().replaceAll(/[^\p{L}\p{N}.]+/gu, ' ')} `.includes(` ${word} `);
}

function createResult({ path, id, page, title, text }, [word]) {
  const link = document.createElement('a');
  link.href = new URL(path.slice(1) + (id && `#${id}`), root).href;
  link.textContent = id ? `${page} › ${title}` : page;
  if (text === '') return item(link);
  const from = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  const excerpt = document.createElement('span');
  excerpt.textContent = `${from > 0 ? '…' : ''}${text.slice(from, from + 120)}…`;
  return item(link, excerpt);
}

function item(...content) {
  const element = document.createElement('li');
  element.append(...content);
  return element;
}
