import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { hashKeySecret, isKeySecret, newKeySecret, secretsIn, toHint } from '../../common/rules/key-secret.ts';
import { times } from '../support/builders.ts';

const ALPHABET = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'];

describe('key secrets', () => {
  test('key secrets are lik_ and 48 characters that need no quoting, and are all different', () => {
    const secrets = times(100, newKeySecret);
    for (const secret of secrets) {
      expect(secret).toMatch(/^lik_[A-Za-z0-9_-]{48}$/);
      expect(isKeySecret(secret)).toBe(true);
    }
    expect(new Set(secrets).size).toBe(100);
  });

  test('every single wrong character of a key secret is detected', () => {
    const secret = newKeySecret();
    const forged = [...secret].flatMap((right, at) =>
      ALPHABET.filter((wrong) => wrong !== right).map((wrong) => secret.slice(0, at) + wrong + secret.slice(at + 1)),
    );

    expect(forged).toHaveLength(52 * 63);
    expect(forged.filter(isKeySecret)).toEqual([]);
  });

  test('no other text is a key secret', () => {
    const secret = newKeySecret();
    const others = ['', 'lik_', secret.slice(0, -1), `${secret}A`, `${secret}\n`, ` ${secret}`, `Bearer ${secret}`];
    expect([...others, secret.replace('lik_', 'LIK_'), `lik_${'+/'.repeat(24)}`].filter(isKeySecret)).toEqual([]);
  });

  test('key secrets are stored as the SHA-256 of the whole text', () => {
    const secret = newKeySecret();

    expect(hashKeySecret(secret)).toEqual(createHash('sha256').update(secret, 'utf8').digest());
    expect(hashKeySecret('abc').toString('hex')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
  });

  test('a key of an earlier release stays valid', () => {
    const zeros = `lik_${Buffer.from(`${'00'.repeat(32)}190a55ad`, 'hex').toString('base64url')}`;

    expect(isKeySecret(zeros)).toBe(true);
  });

  test('key secrets have their last four characters as a hint', () => {
    expect(toHint('lik_abcdefgh')).toBe('efgh');
  });

  test('finds each key secret in a text once, wherever it is cut, and no false ones', async () => {
    const [one, two, three, four] = times(4, newKeySecret) as [string, string, string, string];
    const misspelt = `${one.slice(0, -1)}${one.endsWith('A') ? 'B' : 'A'}`;
    const longer = `${newKeySecret()}x`;
    const text = `KEY=${one}\n${longer} %20${two}%20lik_${three},lik_${one}\u{1f511}${misspelt} ${longer}${'.'.repeat(52)}${four}`;
    for (const size of [...times(120, (index) => index + 1), text.length]) {
      const pieces = times(Math.ceil(text.length / size), (index) => text.slice(index * size, (index + 1) * size));
      expect(await secretsIn(pieces), `${size}`).toEqual({ secrets: [one, two, three, four], misspelt: 1 });
    }
    expect(await secretsIn([text, 'x'])).toEqual({ secrets: [one, two, three], misspelt: 1 });
    expect(await secretsIn([])).toEqual({ secrets: [], misspelt: 0 });
  });
});
