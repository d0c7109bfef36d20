import type { Api } from './api.ts';
import type { RuleId } from './contract-rules.ts';

/** A test of a deployment against rules of the contract, from outside. */
export interface Check {
  /** The expectation, as a sentence without a full stop. */
  readonly title: string;
  /** The rules that the check tests, fully or in part. */
  readonly rules: readonly RuleId[];
  /** Returns why the check cannot run with the given key and settings; undefined if it can. */
  readonly obstacle?: (api: Api) => string | undefined;
  /** Rejects when the expectation is not met, with a message that says what was observed. */
  readonly run: (api: Api) => Promise<void>;
}
