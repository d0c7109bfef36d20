import { expect, test } from 'vitest';
import { acceptsGzip } from '../../gateway/accepts-gzip.ts';

test.each([
  'gzip',
  'GZIP',
  'x-gzip',
  'br, gzip',
  'gzip;q=0.001',
  'gzip ; Q=1.000',
  'deflate, gzip;q=1.0, *;q=0.5',
  '*',
  '*;q=0.1',
  'identity;q=0.5, gzip;q=0.5',
  'identity;q=0, *',
  'gzip, identity;q=0',
  '*;q=0, gzip',
])('zipped is accepted by "%s"', (acceptEncoding) => {
  expect(acceptsGzip(acceptEncoding)).toBe(true);
});

test.each([
  undefined,
  '',
  'identity',
  'br',
  'gzip;q=0',
  'gzip;q=0.000',
  'gzip ; q=0, br',
  'gzip;q=0, *',
  '*;q=0',
  '*, gzip;q=0',
  'gzip;q=0.5, identity',
  'identity;q=1, *;q=0.9',
  'notgzip',
  'gzipped',
  'x;q="gzip"',
  'gzip;q=',
  'gzip;q=-1',
  'gzip;q=2',
  'gzip;q=0.0001',
  'gzip;level=1',
  'gzip;q=1;q=0',
])('zipped is not accepted, or not what is preferred, by "%s"', (acceptEncoding) => {
  expect(acceptsGzip(acceptEncoding)).toBe(false);
});
