// Where the page has its other views, in a sentence: what surrounds the views says so, in its language.
const PLACE = Symbol.for("workbench.others");
const page = globalThis as { [PLACE]?: string };

/** Says it for all views of the page, of whatever module they are. */
export function sayWhereOthersAre(sentence: string): void {
  page[PLACE] = sentence;
}

/** What was said; where nobody has, views stand in cells. */
export function whereOthersAre(): string {
  return (
    page[PLACE] ??
    "In cells, wb.inspect(value), wb.explain_sharding(dataset) and wb.topology() show other views."
  );
}
