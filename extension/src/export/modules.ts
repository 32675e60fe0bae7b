// The built modules as texts. Reports contain and run both. Other pages load the module that makes files when a person
// first asks for a file.
import { createContext } from "preact";
import type * as Exports from "./index";

/** The views, and the module that creates files of them; each is a file in workbench/static. */
export type ModuleName = "widget" | "exports";
export type Code = (name: ModuleName) => Promise<string>;

let page: Code = () => Promise.reject(new Error("this page does not say where it is"));
let loaded: { exports: typeof Exports; text: string } | null = null;

/** Sets the default source of module texts, for views that have no source of their own. */
export function provideCode(from: Code): void {
  page = from;
}

export const codeOfPage: Code = (name) => page(name);

/** A view's source of module texts: each widget's own kernel, of which a page may have several. */
export const CodeSource = createContext(codeOfPage);

/** The texts of all modules. */
export async function allCode(code: Code): Promise<Record<ModuleName, string>> {
  const [widget, { text }] = await Promise.all([code("widget"), load(code)]);
  return { widget, exports: text };
}

/**
 * What makes files, loaded once.
 *
 * @throws Error that says why it cannot be loaded; the next call tries again.
 */
export async function loadExports(code: Code): Promise<typeof Exports> {
  try {
    return (await load(code)).exports;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`the code that makes files did not come: ${why}`, { cause: error });
  }
}

async function load(code: Code): Promise<NonNullable<typeof loaded>> {
  if (loaded) return loaded;
  const text = await code("exports");
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return (loaded = { exports: (await import(address)) as typeof Exports, text });
  } finally {
    URL.revokeObjectURL(address);
  }
}
