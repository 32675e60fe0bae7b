// Plain words and the field's terms for the same things: headings show one, and their tooltips the other.
import { counted, joined } from "../format";

/** The class of the page's body with which views use the field's terms. */
const TERMS = "wb-terms";

/** Whether the views of the page use the field's terms. */
export function saysFieldTerms(): boolean {
  return document.body.classList.contains(TERMS);
}

/** Makes the views of the page use the field's terms, or plain words: they notice the class and redraw. */
export function sayFieldTerms(said: boolean): void {
  document.body.classList.toggle(TERMS, said);
}

export interface Worded {
  /** In plain words. */
  title: string;
  /** The field's term, if it differs. */
  term?: string;
  /** What it means. */
  help?: string;
}

/** What headings mean that have no words of their own for it. */
const MEANINGS: Record<string, string> = {
  device: "what computes",
  elements: "how many",
  "elements/s": "per second",
  functions: "how many it has run",
  group: "which strategy",
  host: "the machine",
  "host:device": "where it is",
  line: "of your code",
  memory: "in use",
  message: "in full",
  operation: "what replicas do together",
  reduction: "how values are combined",
  replica: "its number in the strategy",
  replicas: "how many",
  shape: "length of each axis",
  size: "of the data",
  state: "in a word",
  status: "in a word",
  step: "its number, from 0",
  type: "of the elements",
  updates: "how many",
  worker: "its process",
};

/** The plain words, or the field's term if the user prefers that. */
export function wording(plain: string, term: string): string {
  return saysFieldTerms() ? term : plain;
}

/** A strategy and its number of replicas; the first of its kind without a number. */
export function groupText(group: string, n?: number): string {
  const plain = group.replace(/\/1$/, "").replace(/\/(?=\d+$)/, " ");
  return joined([wording(plain, group), n && replicasText(n)], ", ");
}

/** How many replicas took part. */
export function replicasText(n: number): string {
  return wording(counted(n, "replica"), `n=${n}`);
}

/** A column with the heading that the user prefers, and the other one in its tooltip. */
export function worded<Column extends Worded>(column: Column): Column & { plain: string } {
  const { title, term = "", help = MEANINGS[title] } = column;
  const shown = term && wording(title, term);
  const other = shown === term ? title : term;
  return { ...column, plain: title, title: shown || title, help: joined([shown && other, help], ": ") };
}
