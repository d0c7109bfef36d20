/** Settings of a process, by their names. */
export type Settings = Readonly<Record<string, string>>;
