import { createHash } from 'node:crypto';

/** Secret texts that must not appear in any encoding. Each has a name for the report. */
export class Canaries {
  readonly #forms = new Map<string, string>();

  /** Adds a text and returns it. */
  add(name: string, text: string): string {
    const bytes = Buffer.from(text);
    for (const form of [
      text,
      encodeURIComponent(text),
      JSON.stringify(text).slice(1, -1),
      ...(['base64', 'base64url', 'hex'] as const).map((encoding) => bytes.toString(encoding).replace(/=+$/, '')),
      // JSON and inspect write bytes in this form.
      bytes.join(','),
    ]) {
      this.#forms.set(form, name);
    }
    return text;
  }

  /** Adds the secret of an API key, and its hash. */
  addKey(secret: string): string {
    this.add('secret of a key', secret);
    this.add('most of a secret', secret.slice(4, 44));
    const hash = createHash('sha256').update(secret).digest();
    for (const encoding of ['hex', 'base64', 'base64url'] as const) this.add('hash of a key', hash.toString(encoding));
    this.#forms.set(hash.join(','), 'hash of a key');
    return secret;
  }

  /** Returns the names of all canaries that a text contains. */
  in(text: string): string[] {
    // Bytes are logged as lists of numbers, with or without their indexes.
    const numbers = text.replace(/"\d+":\s*/g, '').replace(/[\s,]+/g, ',');
    const shown = [...this.#forms].filter(([form]) => text.includes(form) || numbers.includes(form));
    return [...new Set(shown.map(([, name]) => name))];
  }
}
