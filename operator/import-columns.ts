import { CONTACT_TYPES } from '../common/rules/field-rules.ts';
import { CommandFault } from './command-fault.ts';
import { COLUMNS } from './csv.ts';

/** The fields that a column may have. */
export const IMPORT_FIELDS: readonly string[] = [...COLUMNS, 'idempotencyKey'];

/** What the operator says about the columns of a file. */
export interface ColumnChoices {
  /** The field of a column, by its heading; an empty one: ignored. */
  readonly fields: ReadonlyMap<string, string>;
  /** Whether columns that are neither named there nor known are ignored. */
  readonly ignoresOthers: boolean;
}

/** A column of a file. */
export interface Column {
  readonly heading: string;
  /** Undefined: ignored. */
  readonly field: string | undefined;
}

/**
 * Returns the columns of a file. Of a file whose columns are unclear nothing is written: a column that is dropped would not be
 * noticed.
 *
 * @throws CommandFault
 */
export function columnsOf(headings: readonly string[], { fields, ignoresOthers }: ColumnChoices): Column[] {
  refuse(
    [...fields.keys()].filter((heading) => !headings.includes(heading)),
    'missing column',
    'the option --columns names it, and the file does not have it',
  );
  const columns = headings.map((heading) => {
    const name = fields.get(heading) ?? heading;
    return {
      heading,
      field: IMPORT_FIELDS.includes(name) ? name : undefined,
      isIgnored: name === '' && heading !== '',
    };
  });
  const unknown = columns.filter(({ field, isIgnored }) => field === undefined && !isIgnored && !ignoresOthers);
  refuse(
    unknown.map(({ heading }) => heading),
    'unknown column',
    `the first line must name columns of ${IMPORT_FIELDS.join(', ')}; give others their fields with --columns, or add --ignore-other-columns`,
  );
  const used = columns.filter(({ field }) => field !== undefined);
  const byField = Map.groupBy(used, ({ heading, field }) => (field === 'displayName' ? `${field} ${heading}` : field));
  refuse(
    [...byField.values()].filter(({ length }) => length > 1).flatMap((each) => each.map(({ heading }) => heading)),
    'repeated column',
    'only displayName may have several columns, of different names',
  );
  for (const needed of [['displayName'], [...CONTACT_TYPES]]) {
    if (used.some(({ field }) => needed.some((each) => each === field))) continue;
    throw new CommandFault(`missing column ${needed.join(' or ')}: add it, or name one with --columns`);
  }
  return columns.map(({ heading, field }) => ({ heading, field }));
}

function refuse(headings: readonly string[], what: string, remedy: string): void {
  const names = headings.map((heading) => `"${heading}"`).join(', ');
  if (headings.length > 0) throw new CommandFault(`${what} ${names}: ${remedy}`);
}
