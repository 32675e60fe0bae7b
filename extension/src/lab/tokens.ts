// Services that may be missing, together with the package that names them, as in Notebook 7.
import { Token } from "@lumino/coreutils";

/** The tokens, each that is missing replaced by one that nobody provides. */
export function optional(...tokens: (Token<unknown> | undefined)[]): Token<unknown>[] {
  return tokens.map((token, index) => token ?? new Token<unknown>(`workbench-lab:absent-${index}`));
}
