// Services that may be missing, together with the package that names them, as in Notebook 7; and one of the plugin's own.
import { Token } from "@lumino/coreutils";
import type { Settings } from "./settings";

export const ISettings = new Token<Settings>("workbench-lab:ISettings");

/** The tokens, each that is missing replaced by one that nobody provides. */
export function optional(...tokens: (Token<unknown> | undefined)[]): Token<unknown>[] {
  return tokens.map((token, index) => token ?? new Token<unknown>(`workbench-lab:absent-${index}`));
}
