// A status in a word, with its sign and colour.
import { useContext } from "preact/hooks";
import { BAD, statusOf } from "../colours";
import { SavedPage } from "./saved_page";

/** What is true of a moment only; in a file that was saved it is "recorded". */
const MOMENTARY = new Set(["live", "stale", "replay"]);

export function Sign({ sign = "▲", colour = BAD }: { sign?: string; colour?: string }) {
  return (
    <i class="wb-sign" aria-hidden style={{ color: colour }}>
      {sign}
    </i>
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
