import { expect, test } from 'vitest';
import { bash, ROOT, temporaryFolder } from '../support/processes.ts';
import { describeIf, hasCommand } from '../support/servers.ts';

describeIf(hasCommand('script'), 'in a terminal', 'install bsdutils', () => {
  test('the log is human-readable', async () => {
    const folder = temporaryFolder();
    const env = `DATABASE_URL=sqlite:${folder}/leads.db CORE_PORT=0 SHUTDOWN_DRAIN_MS=0`;
    const command = `${env} timeout -s TERM 5 '${process.execPath}' '${ROOT}/src/main.ts'`;

    const output = await bash(`script -qec "${command}" ${folder}/typescript < /dev/null`);

    expect(output).toMatch(/INFO.*core.*Server listening at http/);
    expect(output).not.toContain('{"level"');
  });
});
