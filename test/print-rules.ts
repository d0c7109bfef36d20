import { basename } from 'node:path';
import { RULES } from '../conformance/contract-rules.ts';
import { type RuleRow, ruleRows, WITHOUT_CODE, WITHOUT_TEST } from './rule-table.ts';

/** Prints `docs/reference/rules.md`: `npm run generate` keeps it, `npm run check` holds it against what stands there. */

const link = (file: string, name = file) => `[${name}](../../${file})`;

function lineOf({ rule, code, tests }: RuleRow): string {
  const carriedOutBy = code.length > 0 ? code.map((file) => link(file)) : [WITHOUT_CODE[rule]];
  const provenBy = [...Map.groupBy(tests, ({ file }) => file)].map(
    ([file, proofs]) =>
      `${link(file, basename(file, '.test.ts'))}: ${proofs.map(({ title }) => `“${title.replaceAll('|', '\\|')}”`).join(', ')}`,
  );
  if (provenBy.length === 0) provenBy.push(WITHOUT_TEST[rule] ?? '');
  return `| \`${rule}\` | ${RULES[rule]} | ${carriedOutBy.join('<br>')} | ${provenBy.join('<br>')} |`;
}

const rows = await ruleRows();
console.log(`# Rule, code, test

The rules of [the contract](contract.md), each with the files that carry it out and the tests that prove it. A file says so itself, in
a comment with \`@rule\`, and a test by its tags: \`grep -rn '@rule.* 5.10' common gateway src\` leads to the lines,
\`npm test -- --tags-filter='(5.10)'\` runs the proofs (in parentheses, or it is read as a number). A rule without either says why.

Made by \`npm run generate\` of those marks; \`test/contract-rules.test.ts\` holds that no rule is without. A new rule is a paragraph
in the contract, a line in \`conformance/contract-rules.ts\`, a mark and a tag.

| Rule | What it says | Code | Tests |
|---|---|---|---|
${rows.map(lineOf).join('\n')}`);
