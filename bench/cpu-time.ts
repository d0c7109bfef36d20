import { readdirSync, readFileSync } from 'node:fs';

/**
 * The processor time that a process has had so far, all its threads together; microseconds. NaN where Linux does not tell.
 * Of a single request it is a part of a clock tick, in which the kernel tells the time of a whole process.
 */
export function cpuTimeUs(pid: number | undefined): number {
  const threads = attempt(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  // The first number of three: nanoseconds on a processor.
  const times = threads.map((id) => Number.parseInt(read(`/proc/${pid}/task/${id}/schedstat`) ?? '', 10));
  return times.length === 0 ? Number.NaN : times.reduce((sum, time) => sum + time) / 1000;
}

/** What all processors did since the machine was started, in ticks. NaN where Linux does not tell. */
export interface ProcessorTicks {
  readonly all: number;
  /** For which the machine that this one is a guest of gave them to others, though there was something to do. */
  readonly stolen: number;
}

export function processorTicks(): ProcessorTicks {
  const [line = ''] = read('/proc/stat')?.split('\n', 1) ?? [];
  // User, nice, system, idle, waiting for disks, two kinds of interrupts, stolen.
  const ticks = line.split(/\s+/).slice(1, 9).map(Number);
  return { all: ticks.reduce((sum, each) => sum + each, 0), stolen: ticks[7] ?? Number.NaN };
}

/** The child of a process whose command line names a file. Undefined where there is no /proc. */
export function childRunning(file: string, parent: number): number | undefined {
  const children = read(`/proc/${parent}/task/${parent}/children`)?.trim().split(' ').map(Number) ?? [];
  return children.find((pid) => read(`/proc/${pid}/cmdline`)?.includes(file));
}

function read(path: string): string | undefined {
  return attempt(() => readFileSync(path, 'utf8'));
}

function attempt<Result>(body: () => Result): Result | undefined {
  try {
    return body();
  } catch {
    return undefined;
  }
}
