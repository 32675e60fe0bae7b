// What things are called: plain words, the same in all views; the field's where a person prefers those.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ArrayPart, Collectives } from "../src/models";
import { groupText, sayFieldTerms } from "../src/parts/terms";
import { INSERT } from "../src/view";
import type { ViewName } from "../src/views";
import { button, drawn, show, textOf } from "./page";
import * as recorded from "./recorded";

test("a strategy is called by its kind, with a number if it is not the first, and by its replicas", () => {
  assert.equal(groupText("MirroredStrategy/1"), "MirroredStrategy");
  assert.equal(groupText("MirroredStrategy/12", 1), "MirroredStrategy 12, 1 replica");
  assert.equal(groupText("my/own"), "my/own");
  sayFieldTerms(true);
  assert.equal(groupText("MirroredStrategy/1", 4), "MirroredStrategy/1, n=4");
  sayFieldTerms(false);
});

const SAYING = {
  lanes: recorded.collectives,
  heat_map: recorded.collectives,
  sweep: recorded.collectives,
  stuck: recorded.stuck,
} as const;

for (const [view, model] of Object.entries(SAYING)) {
  test(`${view} says which strategy it is about`, () => {
    const shown = show(view as keyof typeof SAYING, model);
    assert.match(textOf(shown.root), /MirroredStrategy, 4 replicas/);
    assert.doesNotMatch(textOf(shown.root), /Strategy\/\d/);
    shown.unmount();
  });
}

test("the number of a run stands only where a person prefers the field's terms", () => {
  for (const view of ["devices", "topology"] as const) {
    const plain = show(view, recorded[view]);
    assert.doesNotMatch(textOf(plain.root), /\brun\b/);
    plain.unmount();
    sayFieldTerms(true);
    const field = show(view, recorded[view]);
    assert.ok(textOf(field.root).includes(`run ${recorded[view].run}`));
    field.unmount();
    sayFieldTerms(false);
  }
});

test("a block of an array has the words of its replicas; the number alone where there is no room", () => {
  const label = (columns: number) => {
    const part: ArrayPart = {
      ...recorded.arrayUneven.parts[0]!,
      replica: 3,
      start: [0, 0],
      stop: [40, columns],
    };
    const shown = show("array_sharding", { ...recorded.arrayUneven, shape: [40, 400], parts: [part] });
    const text = textOf(shown.root.querySelector("svg text.wb-strong"));
    shown.unmount();
    return text;
  };
  assert.equal(label(400), "replica 3");
  assert.equal(label(20), "3");
});

const nothing: Collectives = {
  ...recorded.collectives,
  sweeps: [],
  overview: { ...recorded.collectives.overview, group: "" },
  snapshot: { ...recorded.collectives.snapshot, table: [], groups: [] },
};
const EMPTY = {
  overview: [nothing, "strategy.run(step, args=(batch,))"],
  collective_table: [nothing, "strategy.run(step, args=(batch,))"],
  lanes: [nothing, "strategy.run(step, args=(batch,))"],
  heat_map: [nothing, "strategy.run(step, args=(batch,))"],
  sweep: [nothing, "wb.collectives.sweep(strategy)"],
  runs: [
    { folder: "runs", runs: [], compared: [], rows: [] },
    'with wb.record("runs/first.parquet"):\n    strategy.run(step, args=(batch,))',
  ],
} as const;

for (const [view, [model, code]] of Object.entries(EMPTY)) {
  test(`${view} without anything to draw is a picture, and inserts the line that changes that`, async () => {
    const shown = show(view as ViewName, model as never);
    assert.ok(shown.root.querySelector(".wb-nothing svg"));
    assert.equal(shown.root.querySelector(".wb-nothing code")!.textContent, code);
    const inserted: string[] = [];
    const insert = (event: Event) => {
      inserted.push((event as CustomEvent<{ code: string }>).detail.code);
      event.preventDefault();
    };
    document.addEventListener(INSERT, insert);
    const insertion = view === "runs" ? "Insert these lines" : "Insert this line";
    button(shown.root, insertion).click();
    await drawn();
    assert.deepEqual(inserted, [code]);
    assert.equal(textOf(shown.root.querySelector(".wb-nothing [role=status]")), "");

    document.removeEventListener(INSERT, insert); // as in a page without notebooks
    button(shown.root, insertion).click();
    await drawn();
    assert.match(
      textOf(shown.root.querySelector(".wb-nothing [role=status]")),
      /^Copy it into a cell of a notebook\.$/,
    );
    shown.unmount();
    for (const options of [{ hasNotebook: false }, { saved: {} }]) {
      const alone = show(view as ViewName, model as never, options);
      const nothing = alone.root.querySelector(".wb-nothing")!;
      assert.equal(nothing.querySelector("button"), null);
      assert.match(textOf(nothing), /Copy it into a cell of a notebook\.$/);
      alone.unmount();
    }
  });
}

test("where only workbench itself needed collectives, the table says that none is of the user's code", () => {
  const { snapshot } = recorded.collectives;
  const counters = { ...snapshot.counters, collectives: 0, internal: 3 };
  const shown = show("collective_table", {
    ...recorded.collectives,
    snapshot: { ...snapshot, counters, table: [], internal: snapshot.table },
  });
  assert.equal(
    textOf(shown.root.querySelector(".wb-nothing h3")),
    "No collective of your code was recorded yet",
  );
  shown.unmount();
});
