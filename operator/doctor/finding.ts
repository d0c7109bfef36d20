export interface Finding {
  /** The examined part: `core settings`, `Redis`, … */
  readonly what: string;
  /** A part with a warning works, but the operator should act. */
  readonly verdict: 'ok' | 'warning' | 'fault';
  /** The state of the part. A warning or fault also says what to do. */
  readonly says: string;
}

/** Examines one part, and returns its findings. */
export async function examinePart(what: string, examine: (notes: Notes) => unknown): Promise<readonly Finding[]> {
  const notes = new Notes(what);
  await examine(notes);
  return notes.findings;
}

export class Notes {
  readonly findings: Finding[] = [];
  readonly #what: string;

  constructor(what: string) {
    this.#what = what;
  }

  readonly ok = (says: string): void => this.#note('ok', says);
  readonly warning = (says: string): void => this.#note('warning', says);
  readonly fault = (says: string): void => this.#note('fault', says);

  #note(verdict: Finding['verdict'], says: string): void {
    this.findings.push({ what: this.#what, verdict, says });
  }
}
