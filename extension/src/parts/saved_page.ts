// In a file that was saved nothing goes on any more: views there say so, and open where they were saved from.
import { createContext } from "preact";

export interface Saved {
  /** Title of the view that opens first among pages. */
  open?: string | undefined;
}

/** Null around views of what goes on. */
export const SavedPage = createContext<Saved | null>(null);
