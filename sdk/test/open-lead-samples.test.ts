import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../../test/tools/processes.ts';

/** What handles the refusal of a contact with an open lead, in any language. */
const HANDLES = /LeadAlreadyOpen|lead_already_open/;

/** Pages and programs for those who send leads. What `contract.md` and the walkthrough show are responses. */
const files = execFileSync('git', ['ls-files', '--', 'README.md', 'docs/how-to', 'examples', 'gateway/docs', 'sdk'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => /\.md$|^examples\/.+\.\w+$/.test(file) && !file.includes('/test/'));

/** Programs of examples, and blocks of code in pages, that handle it. */
const samples = files.flatMap((file) => {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const programs = file.endsWith('.md')
    ? [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].filter(([, lang]) => lang !== 'json').map(([, , code]) => code)
    : [text];
  return programs.filter((code = '') => HANDLES.test(code)).map((code = '') => ({ file, code }));
});

/** Sentences that tell senders of leads what to make of it, each with what follows in its paragraph. */
const sentences = files
  .filter((file) => file.endsWith('.md'))
  .flatMap((file) =>
    readFileSync(join(ROOT, file), 'utf8')
      .replaceAll(/^```[\s\S]*?^```/gm, '')
      .split(/\n(?:\n|(?=[-\d#]))/)
      .filter((paragraph) => /normal outcome/.test(paragraph))
      .map((paragraph) => ({ file, paragraph })),
  );

// The tests of these samples run them with a note, and look for it: here none is forgotten.
describe('what a visitor with an open lead has written', () => {
  test('is looked for in the samples of each language and each program', () => {
    expect(samples.map(({ file }) => file).toSorted()).toEqual([
      'examples/recipes/rails/app/models/lead_intake.rb',
      'examples/rest/create-lead.mjs',
      'examples/rest/create-lead.php',
      'examples/rest/create-lead.sh',
      'examples/rest/create_lead.py',
      'sdk/README.md',
      'sdk/php/README.md',
      'sdk/python/README.md',
    ]);
    expect(sentences.length).toBeGreaterThan(4);
  });

  // @proves clients-14
  test.each(samples)('is kept by the sample in $file', ({ code }) => {
    expect(code).toMatch(/\bnote\b/);
  });

  test.each(sentences)('is to be kept, says $file', ({ paragraph }) => {
    expect(paragraph).toMatch(/\bkeeps?\b|\bkept\b|\bread it\b/i);
  });
});
