import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { hashKeySecret, hintOf, isKeySecret, newKeySecret } from '../../common/rules/key-secret.ts';
import { times } from '../support/builders.ts';

const ALPHABET = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'];

describe('key secrets', () => {
  test('are lik_ and 48 characters that need no quoting anywhere, and all different', () => {
    const secrets = times(100, newKeySecret);
    for (const secret of secrets) {
      expect(secret).toMatch(/^lik_[A-Za-z0-9_-]{48}$/);
      expect(isKeySecret(secret)).toBe(true);
    }
    expect(new Set(secrets).size).toBe(100);
  });

  test('every single wrong character is detected', () => {
    const secret = newKeySecret();
    const forged = [...secret].flatMap((right, at) =>
      ALPHABET.filter((wrong) => wrong !== right).map((wrong) => secret.slice(0, at) + wrong + secret.slice(at + 1)),
    );

    expect(forged).toHaveLength(52 * 63);
    expect(forged.filter(isKeySecret)).toEqual([]);
  });

  test('nothing else is one', () => {
    const secret = newKeySecret();
    const others = ['', 'lik_', secret.slice(0, -1), `${secret}A`, `${secret}\n`, ` ${secret}`, `Bearer ${secret}`];
    expect([...others, secret.replace('lik_', 'LIK_'), `lik_${'+/'.repeat(24)}`].filter(isKeySecret)).toEqual([]);
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
