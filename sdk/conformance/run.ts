import { parseArgs } from 'node:util';
import { runSuite, type Verdict } from './suite.ts';

const USAGE = 'node sdk/conformance/run.ts [--only NAME]… [--drivers NUMBER] -- COMMAND…';

const SIGNS: Record<Verdict['verdict'], string> = {
  passed: 'ok',
  failed: 'FAILED',
  'not-supported': 'NOT SUPPORTED',
  'not-run': 'NOT RUN',
};

const { values, positionals: command } = parseArgs({
  options: { only: { type: 'string', multiple: true }, drivers: { type: 'string' } },
  allowPositionals: true,
});
const drivers = Number(values.drivers ?? 12);
if (command.length === 0 || !(drivers >= 1)) {
  console.error(USAGE);
  process.exit(2);
}

const verdicts = await runSuite(command, { ...(values.only && { only: values.only }), drivers, onVerdict: print });
const count = (verdict: Verdict['verdict']) => verdicts.filter((each) => each.verdict === verdict).length;
console.log(
  `${count('passed')} passed, ${count('failed')} failed, ${count('not-supported')} not supported, ${count('not-run')} not run`,
);
process.exitCode = count('failed') > 0 ? 1 : 0;

function print({ name, verdict, variants, reasons }: Verdict): void {
  const times = variants > 1 ? ` (${variants} variants)` : '';
  console.log([`${SIGNS[verdict]} ${name}${times}`, ...reasons.map((reason) => `    ${reason}`)].join('\n'));
}
