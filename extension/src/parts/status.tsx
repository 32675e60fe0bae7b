// A status in a word, with its sign and colour.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { BAD, statusOf, WARNING } from "../colours";

export interface Saved {
  /** Title of the view that opens first among pages. */
  open?: string | undefined;
}

/** Given in a file that was saved, in which nothing goes on: views there say so, and open where they were saved from. Else null. */
export const SavedPage = createContext<Saved | null>(null);

/** No news: the title line says it of all. */
export const QUIET = new Set(["live", "stopped"]);
/** What is true of a moment only; in a file that was saved it is "recorded". */
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

/** The status of all that a view shows, which its title line has. */
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
