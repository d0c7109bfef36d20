import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { hashKeySecret, isKeySecret, newKeySecret } from '../../common/rules/key-secret.ts';
import { hintOf } from '../../src/domain/api-key.ts';
import { times } from '../support/builders.ts';

const ALPHABET = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'];

describe('key secrets', () => {
  test('are lik_ and 48 characters that need no quoting anywhere', () => {
    for (const secret of times(100, newKeySecret)) {
      expect(secret).toMatch(/^lik_[A-Za-z0-9_-]{48}$/);
      expect(isKeySecret(secret)).toBe(true);
    }
  });

  test('are all different, in every random part', () => {
    const secrets = times(1000, newKeySecret);

    expect(new Set(secrets).size).toBe(1000);
    for (const [from, to] of [
      [4, 14],
      [14, 24],
      [24, 34],
      [34, 46],
    ]) {
      expect(new Set(secrets.map((secret) => secret.slice(from, to))).size).toBe(1000);
    }
  });

  test('every single wrong character is detected', () => {
    const secret = newKeySecret();
    const forged = [...secret].flatMap((right, at) =>
      ALPHABET.filter((wrong) => wrong !== right).map((wrong) => secret.slice(0, at) + wrong + secret.slice(at + 1)),
    );

    expect(forged).toHaveLength(52 * 63);
    expect(forged.filter(isKeySecret)).toEqual([]);
  });

  test('two swapped neighbours are detected', () => {
    const secret = newKeySecret();
    const swapped = times(51, (at) => secret.slice(0, at) + secret[at + 1] + secret[at] + secret.slice(at + 2)).filter(
      (text) => text !== secret,
    );

    expect(swapped.length).toBeGreaterThan(20);
    expect(swapped.filter(isKeySecret)).toEqual([]);
  });

  test.each([
    ['nothing', () => ''],
    ['the prefix alone', () => 'lik_'],
    ['one character less', (secret: string) => secret.slice(0, -1)],
    ['one character more', (secret: string) => `${secret}A`],
    ['a line end after it', (secret: string) => `${secret}\n`],
    ['a blank before it', (secret: string) => ` ${secret}`],
    ['another prefix', (secret: string) => secret.replace('lik_', 'LIK_')],
    ['no prefix', (secret: string) => secret.slice(4)],
    ['the scheme before it', (secret: string) => `Bearer ${secret}`],
    ['other base64', () => `lik_${'+/'.repeat(24)}`],
  ])('%s is not a secret', (_, change) => {
    expect(isKeySecret(change(newKeySecret()))).toBe(false);
  });

  test('are stored as the SHA-256 of the whole text', () => {
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

  test('have their last four characters as a hint', () => {
    expect(hintOf('lik_abcdefgh')).toBe('efgh');
  });
});
