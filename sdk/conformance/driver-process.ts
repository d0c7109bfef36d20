import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { CallArguments } from './conversation.ts';

/** A request to a driver. */
export interface DriverRequest
  extends Omit<CallArguments, 'deadlineMs' | 'attemptTimeoutMs' | 'basePath' | 'apiKey' | 'baseUrl'> {
  readonly id: number;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly options: { readonly deadlineMs: number; readonly attemptTimeoutMs: number };
}

export type Parts = Readonly<Record<string, unknown>>;

/** The report of a driver: exactly one of the first four. */
export interface Report {
  readonly result?: Parts;
  readonly error?: Parts;
  /** Why the client refuses the options that it is created with. */
  readonly refused?: string;
  readonly unsupported?: string;
  /** Whether the report has only the facts that a caller learns, because the sender is not a client. */
  readonly isPartial?: boolean;
}

/** A violation of the driver protocol. The process must not be used again. */
export class DriverFault extends Error {}

/** A driver process. It handles one request at a time. */
export class DriverProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #lines: AsyncIterator<string>;
  readonly #ended: Promise<string>;
  #stderr = '';

  constructor([program = '', ...args]: readonly string[], cwd: string, env: NodeJS.ProcessEnv) {
    this.#child = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stderr.setEncoding('utf8').on('data', (text) => {
      this.#stderr += text;
    });
    // A driver that ends during a request is reported through #ended.
    this.#child.stdin.on('error', () => {});
    this.#lines = readLines(this.#child.stdout.setEncoding('utf8'));
    this.#ended = once(this.#child, 'close').then(
      ([status, signal]) => `ended with ${status ?? signal}`,
      (error) => `could not be started: ${error.message}`,
    );
  }

  /**
   * Sends a request and returns its report.
   *
   * @throws DriverFault when no valid report arrives in time
   */
  async run(request: DriverRequest, withinMs: number): Promise<Report> {
    this.#stderr = '';
    this.#child.stdin.write(`${toLine(request)}\n`);
    const timer = Promise.withResolvers<undefined>();
    const timeout = setTimeout(timer.resolve, withinMs, undefined);
    const line = await Promise.race([this.#lines.next(), timer.promise]);
    clearTimeout(timeout);
    if (!line) throw this.#fault(`has not reported within ${withinMs} ms`);
    if (line.done) throw this.#fault(await this.#ended);
    const report = this.#parsed(line.value);
    if (report?.id !== request.id) throw this.#fault(`has reported ${line.value} to request ${request.id}`);
    return report;
  }

  /** Closes stdin. Returns a fault unless the driver then exits by itself, with status 0. */
  async end(): Promise<readonly string[]> {
    this.#child.stdin.end();
    const timeout = setTimeout(() => this.#child.kill('SIGKILL'), 10_000);
    const ended = await this.#ended;
    clearTimeout(timeout);
    return ended === 'ended with 0' ? [] : [this.#fault(`${ended} at the end of stdin, not by itself with 0`).message];
  }

  /** Kills the process immediately. Its own child processes end with its streams. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    for (const stream of this.#child.stdio) stream?.destroy();
    await this.#ended;
  }

  #parsed(line: string): (Report & { readonly id?: number }) | undefined {
    try {
      return JSON.parse(line) ?? undefined;
    } catch {
      throw this.#fault(`has printed something that is not a report: ${line}`);
    }
  }

  #fault(what: string): DriverFault {
    return new DriverFault(`the driver ${what}${this.#stderr && `; on stderr: ${this.#stderr.trimEnd()}`}`);
  }
}

/** Escapes characters that some languages treat as line ends, and that JSON need not escape. */
const toLine = (request: DriverRequest): string =>
  JSON.stringify(request).replace(
    /[\u0085\u2028\u2029]/g,
    (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** Splits a stream into lines at line feeds only. Node's readline also splits at other characters. */
async function* readLines(stream: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const text of stream) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
