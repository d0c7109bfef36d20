import type { ChildProcess } from 'node:child_process';
import { parseArgs } from 'node:util';
import type { DriveResult } from './drive.ts';
import type { Job, JobResult } from './load-generator.ts';
import { cleanUp, cpuTimeUs, nextMessage, startProcess } from './processes.ts';
import { type RunningTarget, startFloor, startProduct } from './targets.ts';
import type { Scenario } from './workload.ts';

const { only } = parseArgs({ options: { only: { type: 'string', default: 'create' } } }).values;
process.on('SIGINT', () => cleanUp().then(() => process.exit(130)));
process.on('SIGTERM', () => cleanUp().then(() => process.exit(143)));

const generator = startProcess('bench/load-generator.ts');
async function perform(job: Job): Promise<DriveResult | null> {
  generator.send(job);
  const answer = await nextMessage<JobResult>(generator);
  if ('error' in answer) throw new Error(answer.error);
  return answer.result;
}

let failed = false;
try {
  const targets = [await startFloor(), await startProduct()];
  for (const target of targets) {
    const { url, secret, sourceId } = target;
    await perform({ kind: 'preload', target: { url, secret, sourceId }, leads: 1000, connections: 64 });
  }
  const measure = async (target: RunningTarget, scenario: Scenario, durationMs: number, ratePerSecond?: number) => {
    const processes: [string, ChildProcess][] = [...Object.entries(target.processes), ['generator', generator]];
    const before = processes.map(([, { pid }]) => cpuTimeUs(pid) ?? Number.NaN);
    const result = (await perform({
      kind: 'drive',
      url: target.url,
      scenario,
      pace: { connections: 64, durationMs, ratePerSecond },
    })) as DriveResult;
    const cpu = processes.map(([name, { pid }], index) => {
      const us = ((cpuTimeUs(pid) ?? Number.NaN) - (before[index] as number)) / result.answered;
      return `${name} ${us.toFixed(0)}`;
    });
    if (Object.keys(result.failures).length > 0) failed = true;
    return { ...result, rate: result.answered / result.seconds, cpu: cpu.join(', ') };
  };
  for (const scenario of only.split(',') as Scenario[]) {
    for (const target of targets) await measure(target, scenario, 2000);
    const ratios: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const rates: number[] = [];
      for (const target of targets) {
        const { rate, p50Ms, p99Ms, cpu, failures } = await measure(target, scenario, 4000);
        rates.push(rate);
        console.log(
          `${scenario} ${target.name}: ${rate.toFixed(0)}/s, p50 ${p50Ms} ms, p99 ${p99Ms} ms; CPU µs/request: ${cpu}`,
          failures,
        );
      }
      ratios.push((rates[1] as number) / (rates[0] as number));
    }
    console.log(`${scenario} product/floor: ${ratios.toSorted((a, b) => a - b)[1]?.toFixed(3)}`);
  }
} finally {
  await cleanUp();
}
process.exit(failed ? 1 : 0);
