import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { DriverRequest } from '../../sdk/conformance/driver-process.ts';

// A driver of the conformance suite for the programs of examples/rest: `node program-driver.ts MAX_SECONDS PROGRAM…`. They take a lead and
// a key, and have no deadline. The driver kills a program that still retries at the deadline, as a website that restarts would.
const [maxSeconds, program = '', ...args] = process.argv.slice(2);

for await (const line of createInterface({ input: process.stdin })) {
  const request: DriverRequest = JSON.parse(line);
  console.log(JSON.stringify({ id: request.id, isPartial: true, ...(await reportOn(request)) }));
}

async function reportOn({ call, capture, idempotencyKey = randomUUID(), ...request }: DriverRequest): Promise<object> {
  if (call !== 'createLead') return { unsupported: 'it only creates leads' };
  if (request.cancelAfterMs !== undefined) return { unsupported: 'it cannot be cancelled' };
  // Environment variables cannot contain NUL.
  const env = {
    LEAD_INTAKE_URL: request.baseUrl,
    LEAD_INTAKE_KEY: request.apiKey.replaceAll('\0', ' '),
    MAX_TIME: String(request.options.attemptTimeoutMs / 1000),
  };
  const child = spawn(program, [...args, JSON.stringify(capture), idempotencyKey], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Starts a process group, because curl is a child of its shell.
    detached: true,
  });
  const kill = () => process.kill(-(child.pid ?? 0), 'SIGKILL');
  const timeout = setTimeout(kill, Math.min(Number(maxSeconds) * 1000, request.options.deadlineMs));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  clearTimeout(timeout);
  switch (child.exitCode) {
    case 0:
    case 3:
      if (stdout === 'open already\n') return { error: { kind: 'lead-already-open', written: 'no', idempotencyKey } };
      return { result: { lead: JSON.parse(stdout).lead, idempotencyKey } };
    case 1:
      return { error: { kind: toKind(stderr), idempotencyKey } };
    case 75:
    case null:
      return { error: { idempotencyKey } };
    default:
      throw new Error(`it ends with ${child.exitCode}: ${stderr}`);
  }
}

function toKind(problem: string): string {
  return problem.includes('integration_idempotency_conflict') ? 'idempotency-conflict' : 'problem';
}
