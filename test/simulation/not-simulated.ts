/** Planted bugs that no life can find, by what the simulated machine lacks. */
const LACKS: Readonly<Record<string, readonly string[]>> = {
  'exports to a file': [
    'a resumed export file keeps an incomplete record',
    'CSV does not escape a formula after an apostrophe',
  ],
  'impostors behind TLS': ['a gateway sends its token to a core with an invalid certificate'],
  'other processes that lock the database file': ['waiting for the lock of another process blocks the core'],
  'more unreadable leads than a poll reads, and odd marks of changes': [
    'unreadable leads at the head of the change feed hide all behind them',
  ],
  'a database of the last release': ['claims by the rule of release 1.0 are taken for current ones'],
};

/** What the machine lacks, by the name of the bug that needs it. */
export const NOT_SIMULATED: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(LACKS).flatMap(([what, names]) => names.map((name) => [name, what])),
);
