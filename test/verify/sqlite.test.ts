import { describe } from 'vitest';
import { expectConformance } from './expect-conformance.ts';

// @proves leads-1
describe('on SQLite', () => expectConformance(() => ({})));
