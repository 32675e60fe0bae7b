// Services that may be missing, together with the package that defines them, as in Notebook 7; and one of the plugin's
// own.
import { Token } from "@lumino/coreutils";
import type { Settings } from "./settings";

export const ISettings = new Token<Settings>("workbench-lab:ISettings");

/** The tokens; each missing one is replaced by one that nothing provides. */
export function optional(...tokens: (Token<unknown> | undefined)[]): Token<unknown>[] {
  return tokens.map((token, index) => token ?? new Token<unknown>(`workbench-lab:absent-${index}`));
}
