import { LuaFactory } from 'wasmoon';

/* Lua in WebAssembly, which runs scripts synchronously. It is created once, before any life. */

/** A value in JavaScript: a list for a table of consecutive numbers, null for nil. */
export type LuaValue = string | number | boolean | null | readonly LuaValue[] | { readonly [name: string]: LuaValue };

/** Runs a script with its keys and arguments. */
export type Script = (keys: readonly string[], args: readonly string[]) => LuaValue;

type Call = (command: string, ...values: LuaValue[]) => LuaValue;

const lua = await new LuaFactory().createEngine();
let call: Call;
let thrown: unknown;
lua.global.set('redis', {
  call: (...values: Parameters<Call>) => {
    try {
      return call(...values);
    } catch (error) {
      thrown = error;
      throw error;
    }
  },
});

/** @param called `redis.call`; its errors end the script and reach the caller unchanged */
export function compileScript(text: string, called: Call): Script {
  const script: Script = lua.doStringSync(`return function(KEYS, ARGV) ${text}\nend`);
  return (keys, args) => {
    [call, thrown] = [called, undefined];
    try {
      return script(keys, args);
    } catch (error) {
      throw thrown ?? error;
    }
  };
}
