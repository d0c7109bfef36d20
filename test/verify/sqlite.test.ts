import { describe } from 'vitest';
import { expectConformance } from './expect-conformance.ts';

// @proves leads-2
describe('on SQLite', () => expectConformance(() => ({})));
