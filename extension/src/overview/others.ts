// A sentence about where the page has its other views, which the surroundings of the views provide in their language.
const PLACE = Symbol.for("workbench.others");
const page = globalThis as { [PLACE]?: string };

/** Sets the sentence for all views of the page, of any module. */
export function sayWhereOthersAre(sentence: string): void {
  page[PLACE] = sentence;
}

/** The sentence; without one, views are in cells. */
export function whereOthersAre(): string {
  return (
    page[PLACE] ??
    "In cells, wb.inspect(value), wb.explain_sharding(dataset) and wb.topology() show other views."
  );
}
