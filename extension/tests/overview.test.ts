import assert from "node:assert/strict";
import { test } from "node:test";
import type { Collectives, EpochFacts, GroupView, LaneItem, ResultCourse } from "../src/models";
import { epochText, figuresOf } from "../src/overview/figures";
import { partsOf } from "../src/overview/lanes";
import { latenessOf, rowsOf, timesOf, waitedOf } from "../src/overview/rows";
import { Selection } from "../src/selection";
import { OPEN } from "../src/view";
import { button, press, settled, show, textOf } from "./page";
import * as recorded from "./recorded";

const model = recorded.collectives;
const group = model.snapshot.groups.find((one) => one.group === model.overview.group)!;

/** A group of `n` replicas, of which the fifth is the latest. */
function crowd(n: number): GroupView {
  const lanes = Array.from({ length: Math.min(32, n) }, (_, replica) => ({
    replica,
    label: `r${replica} h0 cpu:0`,
  }));
  const late_us = lanes.map(({ replica }) => [replica === 5 ? 900 : replica, 1]);
  const lateness = {
    ...group.lateness,
    replicas: lanes.map(({ replica }) => replica),
    late_us,
    median_us: [3, 4],
  };
  return { ...group, n, lanes, lateness };
}

test("a few replicas have a row each", () => {
  const rows = rowsOf(group);

  assert.deepEqual(
    rows.map(({ replica }) => replica),
    [0, 1, 2, 3],
  );
});

test("of many replicas the worst three have rows, and what is typical of all", () => {
  for (const n of [64, 512]) {
    const rows = rowsOf(crowd(n));

    assert.deepEqual(
      rows.map(({ replica }) => replica),
      [5, 31, 30, -1],
    );
    assert.equal(rows[3]!.label, `typical of ${n}`);
    assert.deepEqual(latenessOf(crowd(n), rows[3]!), [3, 4]);
  }
});

test("a replica's times are those of its lane, and the mean's those of all", () => {
  const [first] = rowsOf(group);
  const item = group.items[0]!;
  const absent: LaneItem = { ...item, enter_ns: item.enter_ns.map(() => null) };

  assert.equal(timesOf(item, first!)?.enter, item.enter_ns[0]);
  assert.equal(timesOf(absent, first!), null);
  assert.equal(timesOf(absent, { ...first!, replica: -1 })?.enter, item.mean_enter_ns);
});

test("the replica that all wait for waits least itself", () => {
  const waited = rowsOf(group).map((row) => waitedOf(group, row)!);

  assert.equal(waited.indexOf(Math.min(...waited)), 2); // as recorded
});

test("what is chosen of the steps has the figures of all where it is all of them", () => {
  const { steps_per_second, waited_percent } = figuresOf(group, { of: "", first: 0, last: Infinity });

  const near = (one: number | null, other: number | null) => assert.ok(Math.abs(one! / other! - 1) < 1e-3);
  near(steps_per_second, model.overview.steps_per_second);
  near(waited_percent, model.overview.waited_percent);
});

test("what is typical of all waits as the figure says, and where nobody has told it is not known", () => {
  const typical = rowsOf(crowd(32)).at(-1)!;
  assert.equal(waitedOf(group, typical), 100 * group.pace.waited_share!);

  const { waited_shares: _, ...earlier } = group.lateness;
  assert.equal(waitedOf({ ...group, lateness: earlier }, rowsOf(group)[0]!), null);
});

test("what explains the verdict is opened by whatever is around, else in its place", async () => {
  const shown = show("overview", { ...model, overview: { ...model.overview, verdict: { ...late } } });
  const asked: string[] = [];
  const take = (event: Event) => {
    event.preventDefault();
    asked.push((event as CustomEvent<{ view: string }>).detail.view);
  };
  shown.root.addEventListener(OPEN, take);
  button(shown.root, "Show the steps →").click();
  assert.deepEqual(asked, ["heat_map"]);

  shown.root.removeEventListener(OPEN, take);
  button(shown.root, "Show the steps →").click();
  await settled();
  assert.match(textOf(shown.root), /Latenessby replica and step/);
  shown.unmount();
});

test("what cannot be opened from here is named, until something else is asked for", async () => {
  const starved = { ...late, code: "starved", link: "input" };
  const shown = show("overview", { ...model, overview: { ...model.overview, verdict: starved } });
  button(shown.root, "Show the input →").click();
  await settled();
  assert.match(textOf(shown.root), /dataset\.explain\(\) shows it/);

  shown.root.querySelector<HTMLElement>("[aria-label='More of lanes']")!.click();
  await settled();
  assert.doesNotMatch(textOf(shown.root), /shows it/);
  shown.unmount();
});

test("no replica of a cluster that was stopped is live", () => {
  const shown = show("overview", { ...model, status: "stopped" });
  assert.match(textOf(shown.root), /Replicas live\s*0\s*of 4/);
  shown.unmount();
});

test("of the lines of live replicas only that of a lost one goes, and the others keep their colours", () => {
  const lines = (overview: Partial<Collectives["overview"]>) => {
    const shown = show("overview", { ...model, overview: { ...model.overview, ...overview } });
    const drawn = [...shown.root.querySelectorAll<SVGRectElement>(".wb-figure rect")];
    const found = drawn.map((line) => [Number(line.getAttribute("width")) > 0, line.style.fill]);
    shown.unmount();
    return found;
  };
  const colours = lines({}).map(([, colour]) => colour);

  assert.equal(new Set(colours).size, 4);
  assert.deepEqual(
    lines({ live: 3, lost: [1] }),
    colours.map((colour, line) => [line !== 1, colour]),
  );
  assert.deepEqual(
    lines({ live: 0, lost: [] }),
    colours.map((colour) => [false, colour]),
  );
  const { lost: _, ...old } = model.overview; // of a page that was saved before it was known which are lost
  const shown = show("overview", { ...model, overview: { ...old, live: 3 } });
  const drawn = [...shown.root.querySelectorAll<SVGRectElement>(".wb-figure rect")];
  assert.equal(drawn.filter((line) => Number(line.getAttribute("width")) > 0).length, 3);
  assert.ok(drawn.every((line) => !colours.includes(line.style.fill)));
  shown.unmount();
});

test("a verdict stays for three seconds, except the first one, and before an error", async () => {
  const verdict = (code: string, severity: string) => ({
    ...late,
    code,
    severity,
    sentence: `It is ${code}.`,
  });
  const of = (code: string, severity = "warning") => ({
    ...model,
    overview: { ...model.overview, verdict: verdict(code, severity) },
  });
  const shown = show("overview", of("early", "watching"));
  await shown.update(of("late"));
  await shown.update(of("sending"));
  assert.match(textOf(shown.root), /It is late/);

  await shown.update(of("gone", "error"));
  assert.match(textOf(shown.root), /It is gone/);
  shown.unmount();
});

test("time before a collective is compute, the part beyond the others' late, and the rest of it wait", () => {
  const [row] = rowsOf(group);
  const item: LaneItem = { ...group.items[0]!, ready_ns: 900, mean_enter_ns: 0, err_ns: 0 };
  const kinds = (enter: number, others: number) => {
    const mean_enter_ns = (others * (group.n - 1) + enter) / group.n;
    const parts = partsOf(group, row!, { ...item, mean_enter_ns }, { enter, end: 1000 }, 0, 1000);
    return parts.map(({ kind, from, to }) => [kind, from, to]);
  };

  assert.deepEqual(kinds(900, 300), [
    ["compute", 0, 300],
    ["late", 300, 900],
    ["communicate", 900, 1000],
  ]);
  assert.deepEqual(kinds(300, 500), [
    ["compute", 0, 300],
    ["wait", 300, 900],
    ["communicate", 900, 1000],
  ]);
});

test("a paused overview stays as it was", async () => {
  const shown = show("overview", model);
  shown.root.querySelector<HTMLElement>("[aria-label=Pause]")!.click();
  await settled();
  const newer: Collectives = { ...model, overview: { ...model.overview, step: 4711 } };
  await shown.update(newer);
  assert.doesNotMatch(textOf(shown.root), /4711/);

  shown.root.querySelector<HTMLElement>("[aria-label='Go on']")!.click();
  await settled();
  assert.match(textOf(shown.root), /step 4711/);
  shown.unmount();
});

test("a loop over a dataset tells its epoch, and how much of it is read", async () => {
  const at = (epoch: EpochFacts): Collectives => {
    const groups = [{ ...group, told: { ...group.told, epoch } }];
    return { ...model, snapshot: { ...model.snapshot, groups } };
  };
  const shown = show("overview", at({ number: 2, batches: 40, of: 100 }));
  const facts = shown.root.querySelector<HTMLElement>(".wb-about")!;
  assert.match(textOf(facts), /, epoch 2, 40\s%$/);
  assert.equal(epochText({ number: 2, batches: 40, of: 100 }), "epoch 2, batch 40 of 100");

  await shown.update(at({ number: 0, batches: 1234, of: -1 }));
  assert.match(textOf(facts), /, epoch 0$/);
  assert.equal(epochText({ number: 0, batches: 1234, of: -1 }), "epoch 0, batch 1,234");
  shown.unmount();
});

test("the numbers are there as tables, too", async () => {
  const shown = show("overview", model);
  shown.root.querySelector<HTMLElement>("[aria-label=Table]")!.click();
  await settled();

  assert.match(textOf(shown.root), /steps late/);
  assert.match(textOf(shown.root), /steps per second/);
  shown.unmount();
});

const late = {
  severity: "warning",
  code: "late",
  sentence: "Replica 2 makes everyone wait",
  evidence: "",
  link: "heat_map",
  replica: 2,
  step: -1,
};

/** The recorded model, of which steps have returned a number. */
function returning(result: Partial<ResultCourse>): Collectives {
  const { steps } = group.lateness;
  const mean = steps.map((_, index) => 1 + 1 / (index + 1));
  const replicas = [0, 1, 2, 3].map((replica) => mean.map((value) => value + replica / 100));
  const course = { name: "loss", function: "train", steps, mean, replicas, low: [], high: [], ...result };
  const told = { ...group.told, result: course };
  const groups = model.snapshot.groups.map((one) => (one === group ? { ...group, told } : one));
  return { ...model, snapshot: { ...model.snapshot, groups } };
}

function loss(root: Element): Element {
  return root.querySelector(".wb-module-loss")!;
}

test("without a loss the overview says with which line it would have one", () => {
  const groups = model.snapshot.groups.map((one) => ({ ...one, told: { ...one.told, result: null } }));
  const shown = show("overview", { ...model, snapshot: { ...model.snapshot, groups } });
  assert.match(textOf(loss(shown.root)), /return \{"loss": loss\}/);
  shown.unmount();
});

test("the loss of a step is said by replica, and its step is pointed at", async () => {
  const selection = new Selection();
  const shown = show("overview", returning({}), { selection });
  press("ArrowLeft", loss(shown.root).querySelector(".wb-chart")!);
  await settled();

  const newest = group.lateness.steps.at(-1)!;
  assert.match(
    textOf(loss(shown.root).querySelector("output")),
    new RegExp(`step ${newest}: mean 1\\.02 · 0: 1\\.02, 1: 1\\.03, 2: 1\\.04, 3: 1\\.05`),
  );
  assert.equal(selection.now.step?.number, newest);
  shown.unmount();
});

test("of many replicas the spread is said, and what is not finite as such", async () => {
  const n = group.lateness.steps.length;
  const few = { replicas: [], low: Array(n).fill(1), high: Array(n).fill(null), mean: Array(n).fill(null) };
  const shown = show("overview", returning({ ...few, name: "", function: "train <b>" }));
  assert.match(
    textOf(loss(shown.root)),
    /Resultwhat train <b> returns: mean, and 10 to 90 % of the replicas/,
  );
  press("ArrowLeft", loss(shown.root).querySelector(".wb-chart")!);
  await settled();

  assert.match(textOf(loss(shown.root)), /mean not finite · 10 to 90 %: 1.00 to not finite/);
  shown.unmount();
});

test("the table has the newest loss of each replica", async () => {
  const shown = show("overview", returning({}));
  shown.root.querySelector<HTMLElement>("[aria-label=Table]")!.click();
  await settled();
  assert.match(textOf(shown.root), /loss1\.02/);
  assert.match(textOf(shown.root.querySelector("[aria-label=Replicas]")), /replica 3.*1\.05/);
  shown.unmount();
});

test("hosts and steps that are not known yet are not named", () => {
  const unknown = { ...model, overview: { ...model.overview, hosts: 0, step: -1 } };

  assert.match(textOf(show("overview", model).root), /4 replicas on 2 hosts, step \d+/);
  assert.doesNotMatch(textOf(show("overview", unknown).root), /replicas on|0 hosts|step -1/);
});
