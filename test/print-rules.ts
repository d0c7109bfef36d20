import { basename } from 'node:path';
import { RULES } from '../verify/contract-rules.ts';
import { type RuleRow, ruleRows, WITHOUT_CODE, WITHOUT_TEST } from './rule-table.ts';

/** Prints `docs/reference/rules.md`: `npm run generate` writes it, `npm run check` compares it. */

/** The checks of `lead-intake verify` are run on a deployment by one suite. */
const toName = (file: string) => (file.startsWith('test/verify/') ? 'verify' : basename(file, '.test.ts'));

const link = (file: string, name = file) => `[${name}](../../${file})`;

function formatRow({ rule, code, tests }: RuleRow): string {
  const implementedBy = code.length > 0 ? code.map((file) => link(file)) : [WITHOUT_CODE[rule]];
  const provenBy = tests.map((file) => link(file, toName(file)));
  if (provenBy.length === 0) provenBy.push(WITHOUT_TEST[rule] ?? '');
  return `| \`${rule}\` | ${RULES[rule]} | ${implementedBy.join('<br>')} | ${provenBy.join(', ')} |`;
}

const rows = await ruleRows();
console.log(`# Rule, code, test

The rules of [the contract](contract.md), each with the files that implement it and those whose tests prove it. A file names its rules in a comment with
\`@rule\`, a test by its tags, a check of \`lead-intake verify\`, which a suite runs on a deployment, by its list: \`grep -rn '@rule.* 5.10' common gateway src\` finds the lines, \`npm run test:all -- --tags-filter='(5.10)'\` runs the proofs (without
the parentheses it is read as a number). A rule without either has the reason instead.

\`npm run generate\` makes this page of those comments and tags; \`test/contract-rules.test.ts\` checks that no rule is without. A new rule needs a paragraph in
the contract, a line in \`verify/contract-rules.ts\`, a comment and a tag.

| Rule | What it says | Code | Tests |
|---|---|---|---|
${rows.map(formatRow).join('\n')}`);
