// The built modules as texts. Reports take all of them along; the one that makes files is loaded when a person first asks for a file.
import type * as Exports from "./index";

/** The views, and what makes files of them; each is a file in workbench/static. */
export const MODULES = ["widget", "exports"] as const;
export type ModuleName = (typeof MODULES)[number];
export type Code = (name: ModuleName) => Promise<string>;

let code: Code = () => Promise.reject(new Error("this page does not say where it is"));
let loading: Promise<typeof Exports> | null = null;

/** Tells where the text of a module can be had. */
export function provideCode(from: Code): void {
  code = from;
}

/** The texts of all modules. */
export async function allCode(): Promise<Record<ModuleName, string>> {
  const texts = await Promise.all(MODULES.map((name) => code(name)));
  return Object.fromEntries(MODULES.map((name, index) => [name, texts[index]!])) as never;
}

/**
 * What makes files, loaded once.
 *
 * @throws Error that says why it cannot be loaded; the next call tries again.
 */
export async function loadExports(): Promise<typeof Exports> {
  loading ??= load();
  try {
    return await loading;
  } catch (error) {
    loading = null;
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`the code that makes files did not come: ${why}`, { cause: error });
  }
}

async function load(): Promise<typeof Exports> {
  const address = URL.createObjectURL(new Blob([await code("exports")], { type: "text/javascript" }));
  try {
    return (await import(address)) as typeof Exports;
  } finally {
    URL.revokeObjectURL(address);
  }
}
