import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { aLead, aStudio, BY, claimsOf, times } from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { temporaryFolder } from '../support/processes.ts';
import { aSmallDisk, describeWithSmallDisks } from '../support/small-disk.ts';

describeWithSmallDisks('on a small disk', () => {
  test('an export that fills the disk reports it, and resumes with whole lines once there is room', async () => {
    const env = { DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}` };
    const store = await openStore(env.DATABASE_URL);
    await store.putStudio(aStudio({ id: 's1' }), BY);
    const leads = times(1000, () => aLead({ studioId: 's1', note: 'x'.repeat(500) }));
    await Promise.all(leads.map((lead) => store.createLead(lead, claimsOf(lead))));
    await store.close();
    const disk = await aSmallDisk(1024);
    const path = join(disk.folder, 'out');
    const [command = '', ...within] = disk.within;
    const onDisk = async (...args: string[]) => {
      const {
        code = 0,
        stdout,
        stderr,
      } = await executed(command, [...within, ...args], { env }).catch((error) => error);
      return { status: code, output: stderr + stdout };
    };
    const toFile = () => onDisk(CLI, 'leads', 'export', '--output', path, '--resume');
    await onDisk('sh', '-c', `head -c 700k /dev/zero > ${disk.folder}/ballast`);

    const { status, output } = await toFile();
    expect(output).toMatch(
      /out: ENOSPC: no space left on device, write\n\d+ leads were written; continue after them with --resume/,
    );
    expect(status).toBe(1);
    disk.free();
    expect(await toFile()).toEqual({ status: 0, output: '' });
    const lines: string[] = (await onDisk('cat', path)).output.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).id)).toEqual(leads.map(({ id }) => id));
  });
});
