import type { Api } from './api.ts';
import type { RuleId } from './contract-rules.ts';

/** An outside test of a deployment against rules of the contract. */
export interface Check {
  /** The expectation, as a sentence without a full stop. */
  readonly title: string;
  /** The rules that it tests, fully or in part. */
  readonly rules: readonly RuleId[];
  /** Returns why the check cannot run with the given key and settings; undefined if it can. */
  readonly impossible?: (api: Api) => string | undefined;
  /** Rejects when the expectation is not met, with a message that says what was observed. */
  readonly run: (api: Api) => Promise<void>;
}
