import { type Connection, carryOut } from './connection.ts';
import { MEMO_NAME_LENGTH, setUpMemo, toMemoTable } from './table.ts';

export type Memo = Awaited<ReturnType<typeof openMemo>>;

/**
 * Opens one entry of an outbox's memo, such as the position of a comparison. Creates the memo's table if an earlier release
 * has set up the outbox.
 */
export async function openMemo(connection: Connection, table: string, name: string) {
  const memo = toMemoTable(table);
  // Two tables with long names can share one memo.
  const row = name + table.slice(MEMO_NAME_LENGTH);
  const run = async (sql: string, ...values: string[]) => carryOut(connection, { sql, values });
  const select = () => run(`SELECT value, token FROM ${memo} WHERE name = ?`, row);
  const { rows } = await select().catch(async () => {
    await setUpMemo(connection, table);
    return select();
  });
  if (rows.length === 0) {
    await run(`INSERT INTO ${memo} (name, value, token) VALUES (?, '', '') ON CONFLICT (name) DO NOTHING`, row);
  }
  return {
    /** Returns the text and the token; empty before the first write. */
    async read(): Promise<{ readonly value: string; readonly token: string }> {
      const [stored] = (await select()).rows;
      return { value: String(stored?.value ?? ''), token: String(stored?.token ?? '') };
    },
    /** Takes the entry over: callers with an earlier token can no longer write it. */
    async take(token: string): Promise<void> {
      await run(`UPDATE ${memo} SET token = ? WHERE name = ?`, token, row);
    },
    /** Changes the text and the token, if the token is still the expected one; returns whether it was. */
    async write(value: string, token: string, expected: string): Promise<boolean> {
      const sql = `UPDATE ${memo} SET value = ?, token = ? WHERE name = ? AND token = ?`;
      return (await run(sql, value, token, row, expected)).changes === 1;
    },
  };
}
