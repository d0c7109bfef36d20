import { expect, test } from 'vitest';
import { MAX_CONSUMERS } from '../../common/rules/field-rules.ts';
import { cachedByConsumer, DEFAULT_CONSUMER } from '../../src/domain/consumer.ts';
import { times } from '../support/builders.ts';

test('values stay cached for the maximum number of consumers', () => {
  const make = (consumer: number) => ({ consumer });
  const find = cachedByConsumer(make);
  const numbers = [DEFAULT_CONSUMER.number, ...times(MAX_CONSUMERS, (index) => index + 1)];

  const first = numbers.map(find);

  for (const [index, number] of numbers.entries()) expect(find(number)).toBe(first[index]);
});

test('the values of removed consumers make room for others', () => {
  let made = 0;
  const find = cachedByConsumer(() => ++made);
  for (const number of times(MAX_CONSUMERS + 2, (index) => index + 1)) find(number);

  find(1);

  expect(made).toBe(MAX_CONSUMERS + 3);
});
