import { type Connection, carryOut } from './connection.ts';
import { memoTableOf, setUpMemo } from './table.ts';

/** One thing that an outbox remembers in its database besides leads, such as the position of a comparison. */
export interface Memo {
  /** Returns the text and the token; empty before the first write. */
  read(): Promise<{ readonly value: string; readonly token: string }>;
  /** Takes over: others, with an earlier token, can no longer write. */
  take(token: string): Promise<void>;
  /** Changes the text and the token, if the token is still the expected one; returns whether it was. */
  write(value: string, token: string, expected: string): Promise<boolean>;
}

/** Opens a memo; creates its table for an outbox that an earlier release has set up. */
export async function memoOf(connection: Connection, table: string, name: string): Promise<Memo> {
  const memo = memoTableOf(table);
  const run = async (sql: string, ...values: string[]) => carryOut(connection, { sql, values });
  const select = () => run(`SELECT value, token FROM ${memo} WHERE name = ?`, name);
  const { rows } = await select().catch(async () => {
    await setUpMemo(connection, table);
    return select();
  });
  if (rows.length === 0) {
    await run(`INSERT INTO ${memo} (name, value, token) VALUES (?, '', '') ON CONFLICT (name) DO NOTHING`, name);
  }
  return {
    async read() {
      const [row] = (await select()).rows;
      return { value: String(row?.value ?? ''), token: String(row?.token ?? '') };
    },
    async take(token) {
      await run(`UPDATE ${memo} SET token = ? WHERE name = ?`, token, name);
    },
    async write(value, token, expected) {
      const sql = `UPDATE ${memo} SET value = ?, token = ? WHERE name = ? AND token = ?`;
      return (await run(sql, value, token, name, expected)).changes === 1;
    },
  };
}
