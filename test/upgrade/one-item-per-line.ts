/** Formats a fixture with one lead, response or document per line, so that a diff shows which of them changed. */
export function oneItemPerLine(value: object, depth = 0): string {
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return JSON.stringify(value);
  const lines = entries.map(([name, item]) => {
    const isSplit = depth === 0 || (depth === 1 && Array.isArray(item));
    const text = isSplit ? oneItemPerLine(item, depth + 1) : JSON.stringify(item);
    return `${' '.repeat(depth + 1)}${isList ? '' : `${JSON.stringify(name)}: `}${text}`;
  });
  const [open, close] = isList ? ['[', ']'] : ['{', '}'];
  return `${open}\n${lines.join(',\n')}\n${' '.repeat(depth)}${close}`;
}
