/* The part of Lua that the scripts of the product use, translated to JavaScript. Anything else is an error that names it. */

/** Nil is undefined, a table a map. */
export type LuaValue = number | string | boolean | undefined | LuaTable | LuaFunction;
export type LuaTable = Map<LuaValue, LuaValue>;
type LuaFunction = (...values: LuaValue[]) => LuaValue[];

/** A script or command that is not simulated. */
export class NotInRedis extends Error {}

const TOKENS = /\s+|--[^\n]*|('[^'\\]*'|\d+|[A-Za-z_]\w*|\.\.|[~=<>]=|[-+*/#<>=(){}[\],.:])/y;

/** The binary operators, from those that bind least. The right sides of the first two are not always evaluated. */
const OPERATORS = [['or'], ['and'], ['<', '>', '<=', '>=', '~=', '=='], ['..'], ['+', '-'], ['*', '/']];

const BLOCK_ENDS = ['end', 'else', 'elseif', ''];

/** An expression in JavaScript: the first of its values, all that it has if it is a call, and how a value is put there if it is a field. */
interface Expression {
  readonly one: string;
  readonly all?: string;
  readonly put?: string;
}

const field = (table: string, key: string): Expression => ({
  one: `lua.of(${table}, ${key})`,
  put: `${table}.set(${key}, `,
});

/** Translates a script, statement by statement. */
class Translation {
  readonly #tokens: string[] = [];
  #at = 0;

  constructor(script: string) {
    TOKENS.lastIndex = 0;
    while (TOKENS.lastIndex < script.length) {
      const from = TOKENS.lastIndex;
      const found = TOKENS.exec(script);
      if (!found) throw new NotInRedis(`Lua at ${script.slice(from, from + 30)}`);
      if (found[1] !== undefined) this.#tokens.push(found[1]);
    }
  }

  script(): string {
    const block = this.#block();
    if (this.#next !== '') throw new NotInRedis(`Lua: ${this.#next}`);
    return `${block} return [];`;
  }

  get #next(): string {
    return this.#tokens[this.#at] ?? '';
  }

  #take(): string {
    this.#at += 1;
    return this.#tokens[this.#at - 1] ?? '';
  }

  #takeIf(token: string): boolean {
    if (this.#next !== token) return false;
    this.#at += 1;
    return true;
  }

  #expect(token: string): void {
    if (!this.#takeIf(token)) throw new NotInRedis(`Lua: ${this.#next} in place of ${token}`);
  }

  #name(): string {
    return `$${this.#take()}`;
  }

  #names(): string[] {
    const names = [this.#name()];
    while (this.#takeIf(',')) names.push(this.#name());
    return names;
  }

  #block(): string {
    const statements: string[] = [];
    while (!BLOCK_ENDS.includes(this.#next)) statements.push(this.#statement());
    return statements.join('\n');
  }

  #ended(): string {
    const block = this.#block();
    this.#expect('end');
    return block;
  }

  #statement(): string {
    if (this.#takeIf('local')) return this.#takeIf('function') ? this.#function() : this.#local();
    if (this.#takeIf('if')) return this.#condition();
    if (this.#takeIf('for')) return this.#loop();
    if (this.#takeIf('return')) return `return [${this.#list()}];`;
    const { one, all, put } = this.#suffixed();
    if (all !== undefined) return `${all};`;
    this.#expect('=');
    const value = this.#expression().one;
    return put ? `${put}${value});` : `${one} = ${value};`;
  }

  #function(): string {
    const name = this.#name();
    this.#expect('(');
    const parameters = this.#next === ')' ? [] : this.#names();
    this.#expect(')');
    return `const ${name} = (${parameters.join()}) => { ${this.#ended()} return []; };`;
  }

  #local(): string {
    const names = this.#names();
    return this.#takeIf('=') ? `let [${names.join()}] = [${this.#list()}];` : `let ${names.join()};`;
  }

  #condition(): string {
    const condition = this.#expression().one;
    this.#expect('then');
    const start = `if (lua.isTrue(${condition})) { ${this.#block()} }`;
    if (this.#takeIf('elseif')) return `${start} else { ${this.#condition()} }`;
    if (this.#takeIf('else')) return `${start} else { ${this.#ended()} }`;
    this.#expect('end');
    return start;
  }

  #loop(): string {
    const [name, value] = this.#names();
    const isCounting = value === undefined;
    this.#expect(isCounting ? '=' : 'in');
    if (!isCounting) {
      this.#expect('ipairs');
      this.#expect('(');
    }
    const first = this.#expression().one;
    this.#expect(isCounting ? ',' : ')');
    const last = isCounting ? this.#expression().one : '';
    this.#expect('do');
    const head = isCounting
      ? `for (let ${name} = ${first}; ${name} <= ${last}; ${name} += 1)`
      : `for (const [${name}, ${value}] of lua.inOrder(${first}))`;
    return `${head} { ${this.#ended()} }`;
  }

  /** Expressions, the last of which may have several values. */
  #list(): string {
    const each: Expression[] = [];
    if ([...BLOCK_ENDS, ')', '}'].includes(this.#next)) return '';
    do each.push(this.#expression());
    while (this.#takeIf(','));
    return each.map(({ one, all }, index) => (all && index === each.length - 1 ? `...${all}` : one)).join(', ');
  }

  #expression(level = 0): Expression {
    const operators = OPERATORS[level];
    if (!operators) return this.#unary();
    let left = this.#expression(level + 1);
    while (operators.includes(this.#next)) {
      const operator = this.#take();
      const right = this.#expression(level + 1).one;
      left = { one: `lua['${operator}'](${left.one}, ${level < 2 ? '() => ' : ''}${right})` };
    }
    return left;
  }

  #unary(): Expression {
    if (this.#takeIf('not')) return { one: `!lua.isTrue(${this.#unary().one})` };
    if (this.#takeIf('#')) return { one: `lua.lengthOf(${this.#unary().one})` };
    if (this.#takeIf('-')) return { one: `-lua.number(${this.#unary().one})` };
    return this.#suffixed();
  }

  #suffixed(): Expression {
    let found = this.#simple();
    for (;;) {
      if (this.#takeIf('.')) found = field(found.one, `'${this.#take()}'`);
      else if (this.#takeIf('[')) {
        found = field(found.one, this.#expression().one);
        this.#expect(']');
      } else if (this.#takeIf(':')) {
        const method = this.#take();
        this.#expect('(');
        found = this.#call('lua.method', `'${method}', ${found.one}, `);
      } else if (this.#takeIf('(')) found = this.#call(found.one);
      else return found;
    }
  }

  #call(callee: string, first = ''): Expression {
    const all = `${callee}(${first}${this.#list()})`;
    this.#expect(')');
    return { one: `${all}[0]`, all };
  }

  #simple(): Expression {
    const token = this.#take();
    if (/^['\d]/.test(token)) return { one: token };
    if (token === 'nil') return { one: 'undefined' };
    if (token === 'true' || token === 'false') return { one: token };
    if (token === '{') return { one: this.#table() };
    if (token === '(') {
      const { one } = this.#expression();
      this.#expect(')');
      return { one };
    }
    if (/^[A-Za-z_]/.test(token)) return { one: `$${token}` };
    throw new NotInRedis(`Lua: ${token}`);
  }

  #table(): string {
    if (this.#tokens[this.#at + 1] !== '=') {
      const list = this.#list();
      this.#expect('}');
      return `lua.list([${list}])`;
    }
    const fields: string[] = [];
    while (!this.#takeIf('}')) {
      const name = this.#take();
      this.#expect('=');
      fields.push(`['${name}', ${this.#expression().one}]`);
      this.#takeIf(',');
    }
    return `new Map([${fields}])`;
  }
}

export const list = (values: readonly LuaValue[]): LuaTable =>
  new Map(values.map((value, index) => [index + 1, value]));

/** The values of a table at 1, 2, and so on up to the first that is nil. */
export function* inOrder(table: LuaTable): Generator<[number, LuaValue]> {
  for (let index = 1; table.get(index) !== undefined; index += 1) yield [index, table.get(index)];
}

const isTrue = (value: LuaValue): boolean => value !== undefined && value !== false;

/** @returns undefined: the text is no number */
function numberIn(value: LuaValue): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\s*-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\s*$/i.test(value) ? Number(value) : undefined;
}

function number(value: LuaValue): number {
  const found = numberIn(value);
  if (found === undefined) throw new NotInRedis(`arithmetic on ${value}`);
  return found;
}

export function text(value: LuaValue): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 1e14) return String(value);
  throw new NotInRedis(`${value} as a text`);
}

function difference(a: LuaValue, b: LuaValue): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  throw new NotInRedis(`${a} compared with ${b}`);
}

const lengthOf = (value: LuaValue): number => (value instanceof Map ? [...inOrder(value)].length : text(value).length);

/** What translated scripts call. */
const LUA = {
  ...{ list, inOrder, isTrue, number, lengthOf },
  or: (a: LuaValue, b: () => LuaValue) => (isTrue(a) ? a : b()),
  and: (a: LuaValue, b: () => LuaValue) => (isTrue(a) ? b() : a),
  '<': (a: LuaValue, b: LuaValue) => difference(a, b) < 0,
  '>': (a: LuaValue, b: LuaValue) => difference(a, b) > 0,
  '<=': (a: LuaValue, b: LuaValue) => difference(a, b) <= 0,
  '>=': (a: LuaValue, b: LuaValue) => difference(a, b) >= 0,
  '~=': (a: LuaValue, b: LuaValue) => a !== b,
  '==': (a: LuaValue, b: LuaValue) => a === b,
  '..': (a: LuaValue, b: LuaValue) => text(a) + text(b),
  '+': (a: LuaValue, b: LuaValue) => number(a) + number(b),
  '-': (a: LuaValue, b: LuaValue) => number(a) - number(b),
  '*': (a: LuaValue, b: LuaValue) => number(a) * number(b),
  '/': (a: LuaValue, b: LuaValue) => number(a) / number(b),
  of(table: LuaValue, key: LuaValue): LuaValue {
    if (!(table instanceof Map)) throw new NotInRedis(`${key} of ${table}`);
    return table.get(key);
  },
  method(name: string, of: LuaValue, pattern: LuaValue): LuaValue[] {
    const words = text(pattern).replaceAll('%d', '\\d');
    if (typeof of !== 'string' || words.includes('%')) throw new NotInRedis(`${of}:${name}(${pattern})`);
    const found = new RegExp(words).exec(of);
    if (name === 'match') return found ? found.slice(found.length > 1 ? 1 : 0) : [undefined];
    if (name === 'find') return found ? [found.index + 1, found.index + found[0].length] : [undefined];
    throw new NotInRedis(`the method ${name}`);
  },
};

const GLOBALS = {
  $tonumber: (value: LuaValue) => [numberIn(value)],
  $math: new Map<LuaValue, LuaValue>(
    (['floor', 'ceil', 'max', 'min', 'abs'] as const).map((name) => [
      name,
      (...values: LuaValue[]) => [Math[name](...(values.map(number) as [number]))],
    ]),
  ),
  $table: new Map<LuaValue, LuaValue>([
    [
      'insert',
      (table, value) => {
        if (!(table instanceof Map)) throw new NotInRedis(`insert into ${table}`);
        table.set(lengthOf(table) + 1, value);
        return [];
      },
    ],
  ]),
};

/** Runs a script with its keys and arguments; `call` is `redis.call`. */
export type Script = (keys: LuaTable, args: LuaTable, call: LuaFunction) => LuaValue;

/**
 * Translates a script of Redis.
 *
 * @throws NotInRedis when it has what the scripts of the product do not have
 */
export function scriptOf(lua: string): Script {
  const names = Object.keys(GLOBALS);
  const run = new Function('lua', '$KEYS', '$ARGV', '$redis', ...names, new Translation(lua).script());
  return (keys, args, call) => run(LUA, keys, args, new Map([['call', call]]), ...Object.values(GLOBALS))[0];
}
