import { getBorderCharacters, table } from 'table';

export type TextFields = Readonly<Record<string, string>>;

/** The length from which words may be wrapped, except ids. */
const MAX_WORD = 10;

const ID = /^[\da-f-]{36}$/;

/** A time, which a table shows in seconds. */
const TIME = /^(\d{4}-\d\d-\d\d)T([\d:]{8})\.\d{3}Z$/;

const PADDING = { paddingLeft: 0, paddingRight: 2 };

/**
 * Returns records as a table with its longest texts wrapped.
 *
 * @returns undefined when there are too many columns for the width
 */
export function tableText(records: readonly TextFields[], maxWidth: number): string | undefined {
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const headings = names.map((name) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`));
  const cells = records.map((record) => names.map((name) => record[name]?.replace(TIME, '$1 $2Z') ?? ''));
  const rows = [headings, ...cells];
  const minWidths = columnWidths(rows.map((row) => row.map(longestWord)));
  let widths = columnWidths(rows);
  let excess = sum(widths) + PADDING.paddingRight * names.length - maxWidth;
  if (excess > sum(widths) - sum(minWidths)) return undefined;
  for (; excess > 0; excess -= 1) {
    const reducible = widths.map((width, index) => (width === minWidths[index] ? 0 : width));
    const widest = reducible.indexOf(Math.max(...reducible));
    widths = widths.map((width, index) => width - (index === widest ? 1 : 0));
  }
  const text = table(rows, {
    border: { ...getBorderCharacters('void'), joinBody: '─' },
    columns: widths.map((width) => ({ ...PADDING, width, wrapWord: true })),
    drawHorizontalLine: (index) => index === 1,
  });
  const lines = text.split('\n').map((line) => line.trimEnd());
  return lines.join('\n');
}

function longestWord(text: string): string {
  const [longest = ''] = text.split(' ').toSorted((a, b) => b.length - a.length);
  return ID.test(longest) ? longest : longest.slice(0, MAX_WORD);
}

/** Returns the width of the longest text of each column, as the library measures it. */
function columnWidths(rows: readonly (readonly string[])[]): number[] {
  const [top = ''] = table(rows, { columnDefault: { paddingLeft: 0, paddingRight: 0 } }).split('\n', 1);
  const parts = top.slice(1, -1).split('╤');
  return parts.map(({ length }) => length);
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
