// A status in a word, with its sign and colour.
import { statusOf } from "../colours";

export function Sign({ sign, colour }: { sign: string; colour: string }) {
  return (
    <i class="wb-sign" aria-hidden="true" style={{ color: colour }}>
      {sign}
    </i>
  );
}

/** Sign, word and colour of a status. */
export function StatusWord({ word }: { word: string }) {
  const { sign, colour } = statusOf(word);
  return (
    <span class="wb-status">
      <Sign sign={sign} colour={colour} /> {word}
    </span>
  );
}
