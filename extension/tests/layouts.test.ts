import assert from "node:assert/strict";
import { test } from "node:test";
import {
  arranged,
  type Area,
  type Dock,
  homeOf,
  layoutOf,
  pruned,
  readArea,
  roomFor,
  SHIPPED,
  stacked,
  tabGroups,
} from "../src/lab/layouts/layouts";
import { layoutIn, Seen } from "../src/lab/layouts/notebook_layouts";
import { readSaved, VERSION } from "../src/lab/saved/saved_model";
import { statusWord, titleOf } from "../src/lab/words";
import { VIEWS, type ViewName } from "../src/views";
import * as recorded from "./recorded";

const OTHERS: Dock<string> = { type: "tab-area", widgets: ["notebook"], currentIndex: 0 };
const widgetOf = (tab: { view: string; run: string }) => `pane ${tab.view}${tab.run}`;
const tabOf = (widget: string) =>
  widget.startsWith("pane ") ? { view: widget.slice(5) as ViewName, run: "" } : null;

for (const [name, area] of Object.entries(SHIPPED)) {
  test(`the layout ${name} is arranged beside the notebook, and is what is saved of it`, () => {
    const dock = arranged<string>(area, OTHERS, widgetOf);

    assert.deepEqual(layoutOf(dock, tabOf), area);
    assert.deepEqual(readArea(JSON.parse(JSON.stringify(area))), area);
  });
}

test("a layout that does not say where the others are has them on the left", () => {
  const dock = arranged<string>({ tabs: [{ view: "log", run: "" }], current: 0 }, OTHERS, widgetOf);

  assert.deepEqual(dock, {
    type: "split-area",
    orientation: "horizontal",
    children: [OTHERS, { type: "tab-area", widgets: ["pane log"], currentIndex: 0 }],
    sizes: [1, 1],
  });
});

test("a pane that a layout names twice has one place, and a layout with nothing around has all of it", () => {
  const log: Area = { tabs: [{ view: "log", run: "" }], current: 0 };
  const area: Area = { split: "down", parts: [log, "others", log, "others"], sizes: [1, 2, 3, 4] };

  assert.deepEqual(arranged<string>(area, null, widgetOf), {
    type: "tab-area",
    widgets: ["pane log"],
    currentIndex: 0,
  });
});

test("what is not ours stays as it lay when our panes are taken out", () => {
  const dock: Dock<string> = {
    type: "split-area",
    orientation: "vertical",
    children: [
      { type: "tab-area", widgets: ["pane log", "notebook", "text"], currentIndex: 2 },
      { type: "tab-area", widgets: ["pane lanes"], currentIndex: 0 },
    ],
    sizes: [0.3, 0.7],
  };

  const others = pruned(dock, (widget) => !widget.startsWith("pane "));
  assert.deepEqual(others, { type: "tab-area", widgets: ["notebook", "text"], currentIndex: 1 });
});

test("panes among the tabs of a notebook are saved as beside it, and no panes as nothing", () => {
  const mixed: Dock<string> = { type: "tab-area", widgets: ["notebook", "pane log"], currentIndex: 1 };

  const area = layoutOf(mixed, tabOf);
  const log = { tabs: [{ view: "log", run: "" }], current: 0 };
  assert.deepEqual(area, { split: "across", parts: ["others", log], sizes: [1, 1] });
  assert.equal(layoutOf(OTHERS, tabOf), null);
});

test("settings that make no sense are no layout", () => {
  const deep = Array.from({ length: 20 }).reduce((inner) => ({ split: "down", parts: [inner] }), "others");
  for (const value of [
    null,
    "notebooks",
    [],
    { tabs: [] },
    { tabs: ["nothing"] },
    { tabs: ["constructor"] },
    { split: "diagonal", parts: ["others"] },
    { split: "down", parts: [] },
    { split: "down", parts: ["others", 3] },
    deep,
  ]) {
    assert.equal(readArea(value), null, JSON.stringify(value));
  }
  assert.deepEqual(readArea({ split: "down", parts: ["others", { tabs: ["log"] }], sizes: [-1, "x"] }), {
    split: "down",
    parts: ["others", { tabs: [{ view: "log", run: "" }], current: 0 }],
    sizes: [1, 1],
  });
});

test("a saved view is of exactly its form, or none", () => {
  const { devices, topology } = recorded;
  const good = { version: VERSION, view: "topology", model: topology };
  assert.deepEqual(readSaved(good), { view: "topology", model: topology });
  const { sampled, ...old } = devices; // what earlier versions saved
  assert.ok(sampled);
  assert.deepEqual(readSaved({ version: VERSION, view: "devices", model: old }), {
    view: "devices",
    model: old,
  });
  const { others, ...overview } = recorded.collectives.overview;
  assert.ok(others);
  const log = { ...recorded.collectives, overview };
  assert.deepEqual(readSaved({ version: VERSION, view: "log", model: log }), { view: "log", model: log });
  const wrong = { ...old, sampled: { ...sampled, steps: ["1"] } };
  assert.equal(readSaved({ version: VERSION, view: "devices", model: wrong }), null);
  for (const bad of [
    null,
    [],
    { ...good, version: VERSION + 1 },
    { ...good, view: "toString" },
    { ...good, view: "values" },
    { ...good, more: 1 },
    { ...good, model: { ...topology, more: 1 } },
    { ...good, model: { ...topology, hosts: {} } },
    { ...good, model: { ...topology, hosts: [null] } },
    { ...good, model: JSON.parse(JSON.stringify(topology).replace(/"pid":\d+/, '"pid":1.5')) as unknown },
  ]) {
    assert.equal(readSaved(bad), null, JSON.stringify(bad).slice(0, 90));
  }
});

test("every view has a shape", () => {
  for (const view of Object.keys(VIEWS)) {
    assert.equal(readSaved({ version: VERSION, view, model: {} }), null);
  }
});

test("the plugin has for views the names that they have themselves, in the language of the application", () => {
  const english = { __: (text: string) => text, _n: (text: string) => text };
  for (const view of Object.keys(VIEWS) as ViewName[]) {
    assert.equal(titleOf(view, english), VIEWS[view].title);
  }
  const loud = { ...english, __: (text: string) => text.toUpperCase() };
  assert.equal(titleOf("lanes", loud), "LANES");
  assert.deepEqual([statusWord("lost", loud), statusWord("gone fishing", loud)], ["LOST", "gone fishing"]);
});

test("one more pane gets a tab that can be read: with few others, else in a part of its own", () => {
  const dock = {
    type: "split-area" as const,
    orientation: "horizontal" as const,
    sizes: [1, 1],
    children: [
      { type: "tab-area" as const, widgets: ["notebook"], currentIndex: 0 },
      { type: "tab-area" as const, widgets: ["a", "b", "c"], currentIndex: 2 },
    ],
  };
  const height = (widget: string) => (widget === "c" ? 600 : 0);
  const groups = tabGroups<string>(dock, (widget) => widget !== "notebook");
  assert.deepEqual(groups, [["a", "b", "c"]]);
  assert.deepEqual(roomFor(groups, "b", height), { mode: "tab-after", ref: "b" });
  const full = [["a", "b", "c", "d"]];
  assert.deepEqual(roomFor(full, "b", height), { mode: "split-bottom", ref: "b" });
  assert.deepEqual(roomFor([...full, ["e"]], "b", height), { mode: "tab-after", ref: "e" });
  // No part is high enough to be split: the bar with the fewest tabs.
  const low = () => 200;
  assert.deepEqual(
    roomFor(
      [
        ["a", "b", "c", "d", "e"],
        ["f", "g", "h", "i"],
      ],
      "a",
      low,
    ),
    { mode: "tab-after", ref: "i" },
  );
});

test("a notebook is new once in a workspace, also on the next page, and where nothing can be kept", async () => {
  const kept = new Map<string, unknown>();
  const state = {
    fetch: (id: string) => Promise.resolve(kept.get(id)),
    save: (id: string, value: unknown) => Promise.resolve(kept.set(id, value)),
  };
  const seen = await Seen.of(state);

  assert.deepEqual([seen.add("a.ipynb"), seen.add("a.ipynb")], [true, false]);
  assert.deepEqual(
    [(await Seen.of(state)).add("a.ipynb"), (await Seen.of(state)).add("b.ipynb")],
    [false, true],
  );
  for (const damaged of ["text", { length: 3 }, null]) {
    const broken = {
      ...state,
      fetch: () => Promise.resolve(damaged),
      save: () => Promise.reject(new Error()),
    };
    assert.ok((await Seen.of(broken)).add("a.ipynb"));
  }
  assert.ok((await Seen.of(null)).add("a.ipynb"));
});

test("a notebook's metadata hold a layout, or anything else", () => {
  const layoutOfMetadata = (metadata: unknown) =>
    layoutIn({ context: { model: { getMetadata: () => metadata } } } as unknown as Parameters<
      typeof layoutIn
    >[0]);

  assert.equal(layoutOfMetadata({ layout: "data" }), "data");
  for (const other of [undefined, null, "data", 3, [], {}]) assert.equal(layoutOfMetadata(other), undefined);
});

test("in a narrow window panes lie below everything else, and side by side", () => {
  const tabs = (...views: ViewName[]): Area => ({
    tabs: views.map((view) => ({ view, run: "" })),
    current: 0,
  });
  const split = (way: "across" | "down", ...parts: Area[]): Area => ({ split: way, parts, sizes: [1, 1] });
  const [stuck, lanes] = [tabs("stuck", "log"), tabs("values", "lanes")];
  assert.deepEqual(SHIPPED.debugging, split("across", "others", split("down", stuck, lanes)));
  assert.deepEqual(stacked(SHIPPED.debugging), split("down", "others", split("across", stuck, lanes)));
  const below = split("down", "others", stuck);
  assert.equal(stacked(below), below);
  assert.equal(stacked("others"), "others");
});

test("what is opened among our panes belongs to the other documents, where there are some", () => {
  const bar = (...widgets: string[]): Dock<string> => ({ type: "tab-area", widgets, currentIndex: 0 });
  const beside = (...children: Dock<string>[]): Dock<string> => ({
    type: "split-area",
    orientation: "horizontal",
    children,
    sizes: children.map(() => 1),
  });
  const isOurs = (widget: string) => widget.startsWith("pane ");
  const lies = beside(bar("first", "second"), bar("pane lanes", "third"));
  assert.equal(homeOf(lies, "third", isOurs), "second");
  assert.equal(homeOf(lies, "first", isOurs), null);
  assert.equal(homeOf(bar("pane lanes", "third"), "third", isOurs), null);
  assert.equal(homeOf(null, "third", isOurs), null);
});
