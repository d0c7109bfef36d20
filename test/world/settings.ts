/** Settings of a process, by their own names. */
export type Settings = Readonly<Record<string, string>>;
