import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { act, can, isOn, turnOff } from "../src/lab/panes/actions";
import { hasAlerts, walk } from "../src/lab/panes/alerts";
import { Baselines, sweepsOf } from "../src/lab/panes/baselines";
import { makingCode } from "../src/lab/panes/making_code";
import type { EventItem } from "../src/models";
import { OPENED } from "../src/views";
import { ghostOf } from "../src/views/sweep";
import { settled, show, textOf } from "./page";
import * as recorded from "./recorded";

const live = { ...recorded.collectives, status: "live" };

test("the overview is paused, shown as table and exported by its buttons", async () => {
  const { root } = show("overview", live);
  assert.ok(can(root, "pause") && can(root, "table") && can(root, "export"));

  await act(root, null, "pause");
  await settled();
  assert.ok(isOn(root, "pause"));
  await act(root, null, "pause");
  await act(root, null, "table");
  await act(root, null, "export");
  await settled();
  assert.ok(!isOn(root, "pause") && isOn(root, "table"));
  assert.equal(root.querySelectorAll("[role=menu]").length, 1);
});

test("each view can be exported, and one without a button for it cannot be paused", () => {
  assert.ok(can(show("lanes", live).root, "pause"));
  assert.ok(can(show("collectives", live).root, "export"));
  assert.ok(!can(show("collectives", live).root, "table"), "the name of a page is no such button");
  const { root } = show("heat_map", live);
  assert.ok(can(root, "table") && !can(root, "pause"));
});

test("a menu opens where the button of exports is seen, and nothing else unfolds", async () => {
  const { root } = show("lanes", live);
  const head = root.querySelector(".wb-head")!;
  const more = document.createElement("button");
  more.setAttribute("aria-label", "More");
  more.setAttribute("aria-expanded", "false");
  const exports = head.querySelector<HTMLElement>(".wb-export")!;
  let unfolded = 0;
  more.addEventListener("click", () => {
    unfolded++;
    exports.hidden = false;
  });
  head.append(more);

  exports.hidden = true;
  await act(root, null, "table");
  assert.equal(unfolded, 0);
  await settled();
  exports.hidden = true;
  await act(root, null, "export");
  assert.equal(unfolded, 1);
  await settled();
  assert.equal(root.querySelectorAll("[role=menu]").length, 1);
});

test("several parts of a view become tables together, and one of them where the focus is", async () => {
  const [group] = live.snapshot.groups;
  const groups = [group!, { ...group!, run_id: "another" }];
  const { root } = show("lanes", { ...live, snapshot: { ...live.snapshot, groups } });
  const charts = () => root.querySelectorAll("canvas").length;
  assert.equal(charts(), 2);

  await act(root, root.querySelectorAll(".wb-part")[1]!, "table");
  await settled();
  assert.equal(charts(), 1);
  await act(root, null, "table"); // some are: all are charts again
  await settled();
  assert.equal(charts(), 2);
  await act(root, null, "table");
  await settled();
  assert.equal(charts(), 0);
});

test("the table that takes the place of a chart gets its focus, and so does the chart again", async () => {
  const { root } = show("lanes", live);
  const part = root.querySelector(".wb-part");
  root.querySelector<HTMLElement>(".wb-chart")!.focus();
  await act(root, part, "table");
  assert.ok(document.activeElement?.closest("[role=grid]"));
  await act(root, part, "table");
  assert.ok(document.activeElement?.classList.contains("wb-chart"));
});

test("a table takes the focus from nobody who got it meanwhile", async () => {
  const { root } = show("lanes", live);
  const palette = document.body.appendChild(document.createElement("input"));
  root.querySelector<HTMLElement>(".wb-chart")!.focus();
  const acting = act(root, root.querySelector(".wb-part"), "table");
  palette.focus();
  await acting;
  assert.equal(document.activeElement, palette);
  palette.remove();
});

test("a pause ends in each part, and where there is none, none begins", async () => {
  const [group] = live.snapshot.groups;
  const groups = [group!, { ...group!, run_id: "another" }];
  const { root } = show("lanes", { ...live, snapshot: { ...live.snapshot, groups } });
  await act(root, root.querySelector(".wb-part"), "pause");
  await settled();
  assert.ok(isOn(root, "pause"));
  turnOff(root, "pause");
  await settled();
  assert.ok(!isOn(root, "pause"));
});

const event = (key: string, severity: string): EventItem => ({
  ...recorded.lost.snapshot.events[0]!,
  ...{ key, severity, kind: severity === "info" ? "log" : "alert", name: key, step: -1 },
});

test("alerts are walked through in a log, and nothing else is shown then", async () => {
  const events = ["a", "b", "c"].flatMap((key) => [event(`said ${key}`, "info"), event(key, "warning")]);
  const { root } = show("log", { ...live, snapshot: { ...live.snapshot, events } });
  const at = async (way: "next" | "previous") => {
    await walk(root, way);
    await settled();
    const row = document.activeElement?.closest("tr");
    return row?.getAttribute("aria-rowindex") && textOf(row.querySelector(".wb-what"));
  };

  assert.equal(await at("next"), "a");
  assert.equal(await at("next"), "b");
  assert.equal(await at("next"), "c");
  assert.equal(await at("next"), "c");
  assert.equal(await at("previous"), "b");
  assert.equal(await at("previous"), "a");
  assert.equal(await at("previous"), "a");
  assert.equal(root.querySelectorAll("tbody tr").length, 3);
});

test("the first alert is reached backwards from the last, and a log without alerts is left alone", async () => {
  const events = [event("said", "info"), event("a", "warning"), event("b", "error")];
  const { root } = show("log", { ...live, snapshot: { ...live.snapshot, events } });
  await walk(root, "previous");
  await settled();
  assert.equal(textOf(document.activeElement), "b");

  const quiet = { ...live, snapshot: { ...live.snapshot, events: [event("said", "info")] } };
  await walk(show("log", quiet).root, "next");
  assert.ok(!hasAlerts(quiet));
  assert.ok(hasAlerts({ ...quiet, snapshot: { ...quiet.snapshot, events } }));
});

/** The state of a page, which keeps one value. */
function stateWith(value: unknown) {
  const state = {
    value,
    fetch: () => Promise.resolve(state.value),
    save: (_: string, next: unknown) => Promise.resolve((state.value = next)),
  };
  return state;
}

test("a sweep that is taken as baseline is a ghost behind later ones, after a reload, too", async () => {
  const state = stateWith(undefined);
  const baselines = new Baselines(state);
  await settled();
  const sweeps = sweepsOf(live);
  assert.ok(sweeps.length > 0 && baselines.isEmpty);
  await baselines.keep({ name: "before", sweeps });

  const reloaded = new Baselines(stateWith(JSON.parse(JSON.stringify(state.value))));
  let changes = 0;
  reloaded.listen(() => changes++, new AbortController().signal);
  await settled();
  assert.equal(changes, 1);
  const [shown] = reloaded.under(live).sweeps;
  assert.equal(shown?.baseline?.name, "before");
  assert.deepEqual(ghostOf(shown), sweeps[0]!.points);
  assert.equal(reloaded.under(recorded.replay).collectives.sweeps[0]?.baseline?.name, "before");
  assert.equal(reloaded.under(recorded.topology), recorded.topology);

  await reloaded.keep(null);
  assert.deepEqual(reloaded.under(live), live);
});

test("what is no baseline in the state of a page is not taken for one", async () => {
  for (const value of [
    null,
    3,
    "x",
    {},
    { name: 1, sweeps: [] },
    { name: "x", sweeps: [{ op: "all_reduce" }] },
  ]) {
    const baselines = new Baselines(stateWith(value));
    await settled();
    assert.ok(baselines.isEmpty);
  }
});

test("each view has code, and a run has its path from the folder of the notebook", () => {
  for (const view of OPENED)
    assert.match(makingCode(view, "", ""), /^import workbench as wb\n\n\w[\w.]*(\(\w*\))?$/);
  const path = (run: string, notebook: string) =>
    /open_run\("(.*)"\)/.exec(makingCode("lanes", run, notebook))?.[1];
  assert.equal(path("runs/a.parquet", "train.ipynb"), "runs/a.parquet");
  assert.equal(path("work/runs/a.parquet", "work/train.ipynb"), "runs/a.parquet");
  assert.equal(path("runs/a.parquet", "work/deep/train.ipynb"), "../../runs/a.parquet");
  assert.equal(path("a/runs/a.parquet", "b/train.ipynb"), "../a/runs/a.parquet");
});

interface Schema {
  "jupyter.lab.shortcuts": { command: string; keys: string[]; selector: string }[];
  "jupyter.lab.menus": { context: { command?: string; selector: string }[] };
}

test("keys are those of the help and of the guide, one command each, and have a place in the menu of panes", () => {
  const schema = JSON.parse(readFileSync("schema/plugin.json", "utf8")) as Schema;
  const shortcuts = schema["jupyter.lab.shortcuts"];
  const help = readFileSync("src/lab/help.ts", "utf8");
  const guide = readFileSync("../notebooks/guide/how-to/panes-and-layouts.md", "utf8");
  const menu = schema["jupyter.lab.menus"].context.filter(({ selector }) => selector === ".wb-pane");
  const pairs = shortcuts.map(({ keys, selector }) => `${keys.join()} ${selector}`);
  assert.equal(new Set(pairs).size, pairs.length);
  for (const { command, keys, selector } of shortcuts) {
    assert.ok(selector.startsWith(".wb-pane"));
    assert.ok(
      menu.some((item) => item.command === command),
      `${command} in the menu`,
    );
    for (const text of [help, guide]) assert.match(text, new RegExp(`(?<!Alt )\\b${keys[0]!}\\b`), keys[0]);
  }
});
