import type { Api } from './api.ts';
import type { RuleId } from './contract-rules.ts';

/** Something that a deployment of the contract must do, seen from outside. */
export interface Check {
  /** What is expected, as a sentence without a full stop. */
  readonly title: string;
  /** What it is part of the proof of. */
  readonly rules: readonly RuleId[];
  /** Why it cannot be made with what is at hand; undefined: it can. */
  readonly impossible?: (api: Api) => string | undefined;
  /** Rejects when the expectation is not met; the error's message says what was seen instead. */
  readonly run: (api: Api) => Promise<void>;
}
