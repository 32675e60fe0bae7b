// A status in a word, with its sign and colour.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { BAD, statusOf, WARNING } from "../colours";

export interface Saved {
  /** Title of the view that opens first among pages. */
  open?: string | undefined;
}

/** For a saved file, in which nothing changes: views there say so, and open where they were saved. Otherwise null. */
export const SavedPage = createContext<Saved | null>(null);

/** Not shown separately: the title line shows it for all. */
export const QUIET = new Set(["live", "stopped"]);
/** A status that is only true at a moment; a saved file shows "recorded" instead. */
const MOMENTARY = new Set(["live", "stale", "replay"]);

export function Sign({
  sign = "▲",
  colour = sign === "✖" ? BAD : WARNING,
}: {
  sign?: string;
  colour?: string;
}) {
  return (
    <i class="wb-sign" aria-hidden style={{ color: colour }}>
      {sign}
    </i>
  );
}

/** The status of everything that a view shows, for its title line. */
export function Status({ word }: { word: string }) {
  return (
    <span class="wb-state" data-status={word}>
      <StatusWord word={word} />
    </span>
  );
}

/** Sign, word and colour of a status. */
export function StatusWord({ word }: { word: string }) {
  const isSaved = useContext(SavedPage) !== null;
  const shown = isSaved && MOMENTARY.has(word) ? "recorded" : word;
  const { sign, colour } = statusOf(shown);
  return (
    <span class="wb-status">
      <Sign sign={sign} colour={colour} /> {shown}
    </span>
  );
}
