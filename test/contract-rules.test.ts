import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CONTRACT_RULES } from '../conformance/contract-rules.ts';
import { RULE_PROOFS } from './contract-rules.ts';

/** The contract is kept beside the repository: a clone alone has the table without it. */
const CONTRACT = join(import.meta.dirname, '../../shared/lead-intake-api.md');

/** What keeps a test, or all tests around it, from being run, or from failing. */
const NOT_RUN =
  /\b(?:test|it|describe|suite|context|ctx)\b[\w.]*\.(?:skip|skipIf|runIf|todo|only|fails)\b|\b(?:skip|todo|only|fails): ?true/;

/** A file's text without its comments, so that what was commented out proves nothing. */
function codeOf(file: string): string {
  const path = join(import.meta.dirname, file);
  if (!existsSync(path)) return '';
  return readFileSync(path, 'utf8').replace(/^\s*\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
}

/** How often a text is the title of a test: the first argument of a call, and not of `describe`. */
function titled(code: string, title: string): number {
  const quoted = ["'", '"', '`'].map((quote) => RegExp.escape(quote + title + quote)).join('|');
  return [...code.matchAll(new RegExp(`(?<!describe(?:\\.\\w+)*)\\(\\s*(?:${quoted}),`, 'g'))].length;
}

describe('each rule of the contract', () => {
  test.each(RULE_PROOFS)(
    '$id is proven by tests that exist and are run, or says why not',
    ({ provenBy = {}, reason }) => {
      const proofs = Object.entries(provenBy).flatMap(([file, titles]) => titles.map((title) => ({ file, title })));
      if (proofs.length === 0) expect(reason).toMatch(/\w/);
      for (const { file, title } of proofs) {
        expect({ file, title, found: titled(codeOf(file), title) }).toEqual({ file, title, found: 1 });
        expect({ file, notRun: NOT_RUN.exec(codeOf(file))?.[0] }).toEqual({ file, notRun: undefined });
      }
    },
  );

  test('has its proofs in one place', () => {
    expect(RULE_PROOFS.map(({ id }) => id).toSorted()).toEqual(Object.keys(CONTRACT_RULES).toSorted());
  });

  test.skipIf(!existsSync(CONTRACT))('is in the table: every numbered rule and every row of the document', () => {
    const found = rulesOf(readFileSync(CONTRACT, 'utf8'));
    expect(found.length).toBeGreaterThan(60);
    expect(new Set(found).size).toBe(found.length);
    const listed = new Set<string>(Object.keys(CONTRACT_RULES));
    expect(found.filter((id) => !listed.has(id))).toEqual([]);
  });
});

/** The table's names for all numbered rules and table rows of a document. */
function rulesOf(document: string): string[] {
  const ids: string[] = [];
  let section = '';
  let isRule = false;
  let isTable = false;
  let nameColumn = 0;
  for (const line of document.split('\n')) {
    const cells = line.startsWith('|')
      ? line
          .split('|')
          .map((cell) => cell.trim())
          .slice(1, -1)
      : undefined;
    const heading = /^#+ (\d+(?:\.\d+)?)/.exec(line)?.[1];
    const number = /^(\d+)\. /.exec(line)?.[1];
    if (heading !== undefined) [section, isRule] = [heading, false];
    if (line === 'Rules:') isRule = true;
    if (number !== undefined) ids.push(isRule ? `${section} rule ${number}` : `${section}.${number}`);
    if (cells === undefined) isTable = false;
    else if (!isTable) {
      isTable = true;
      // Statuses and states repeat from row to row: there the second column tells rows apart.
      nameColumn = cells.findIndex((name) => name === 'code' || name === 'Trigger');
      if (nameColumn < 0) nameColumn = 0;
    } else if (!/^-+$/.test(cells[0] ?? '')) ids.push(`${section} ${cells[nameColumn]}`);
  }
  return ids;
}
