import { inspect } from 'node:util';

const MASK = '[secret]';

/** A secret text that prints, logs and serialises as a mask. `reveal` returns the text. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }
}
