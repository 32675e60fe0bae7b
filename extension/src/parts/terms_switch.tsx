// Where a page has no settings: a person chooses between plain words and the field's terms, and the browser keeps it.
import { useState } from "preact/hooks";
import { keep, kept } from "../kept";
import { sayFieldTerms, saysFieldTerms } from "./terms";

const NAME = "field-terms";

/** Lets views say what a person chose before in this browser. */
export function sayKeptTerms(): void {
  sayFieldTerms(kept(NAME) === "true");
}

export function TermsSwitch() {
  const [said, setSaid] = useState(saysFieldTerms());
  const change = (chosen: boolean) => {
    keep(NAME, String(chosen));
    sayFieldTerms(chosen);
    setSaid(chosen);
  };
  return (
    <label title="What views call things: “bandwidth” and “replica 1 on a”, or “busbw” and “r1@a”">
      <input type="checkbox" checked={said} onChange={(event) => change(event.currentTarget.checked)} /> The
      field's terms
    </label>
  );
}
