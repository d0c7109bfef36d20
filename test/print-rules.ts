import { basename } from 'node:path';
import { RULES } from '../verify/contract-rules.ts';
import { type RuleRow, ruleRows, WITHOUT_CODE, WITHOUT_TEST } from './rule-table.ts';

/** Prints `docs/reference/rules.md`: `npm run generate` writes it, `npm run check` compares it. */

/** One suite runs all checks of `lead-intake verify`, so its files share a name. */
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

The rules of [the contract](contract.md), each with the files that implement it and those whose tests prove it. Code names its rules in a comment with
\`@rule\`: \`grep -rn '@rule.* 5.10' common gateway src\` finds the lines. Tests have their rules as tags: \`npm run test:all -- --tags-filter='(5.10)'\` runs them (without
the parentheses it is read as a number). Checks of \`lead-intake verify\` list their rules, and one suite runs them on a deployment. A rule without code or tests has the reason instead.

\`npm run generate\` makes this page from those comments, tags and lists. \`test/contract-rules.test.ts\` checks that no rule is missing. A new rule needs a paragraph in
the contract, a line in \`verify/contract-rules.ts\`, a comment and a tag.

| Rule | What it says | Code | Tests |
|---|---|---|---|
${rows.map(formatRow).join('\n')}`);
