// Where a page has no settings: a person chooses between plain words and the field's terms, and the browser keeps it.
import { keep, kept } from "../kept";
import { sayFieldTerms, saysFieldTerms } from "./terms";

const NAME = "field-terms";

/** Lets views say what a person chose before in this browser. */
export function sayKeptTerms(): void {
  sayFieldTerms(kept(NAME) === "true");
}

/** The switch; an element of its own, as a report's page draws nothing else. */
export function termsSwitch(): HTMLElement {
  const label = document.createElement("label");
  label.title = "What views call things: “bandwidth” and “replica 1 on a”, or “busbw” and “r1@a”";
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = saysFieldTerms();
  box.addEventListener("change", () => {
    keep(NAME, String(box.checked));
    sayFieldTerms(box.checked);
  });
  label.append(box, " The field's terms");
  return label;
}
