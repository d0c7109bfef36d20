import { describe } from 'vitest';
import { expectConformance } from './expect-conformance.ts';

describe('on SQLite', () => expectConformance(() => ({})));
