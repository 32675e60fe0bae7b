import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksOf } from "../src/views/array_sharding";
import { columnsOf, tellsApart } from "../src/views/collective_table";
import { scaleOf } from "../src/overview/late_levels";
import { fold } from "../src/parts/folding";
import * as recorded from "./recorded";
import { apart, logTicks } from "../src/scale";
import { orderOf } from "../src/values/elements";
import { ratioText } from "../src/views/comparison";
import { fittedBusbw, ghostOf, timesAsFast } from "../src/views/sweep";
import type { ArrayPart } from "../src/models";
import { collectives, runs } from "./recorded";

test("one outlier does not take the colours of everything else", () => {
  const usual = Array.from({ length: 99 }, () => 10);

  assert.deepEqual(scaleOf([[...usual, 5000]]), { peak: 10, most: 5000 });
  assert.deepEqual(scaleOf([[1, 2, null]]), { peak: 2, most: 2 });
  assert.deepEqual(scaleOf([[0, 0]]), { peak: 1e-9, most: 1e-9 });
});

test("a replica that is late step after step is bright, whatever the first step took and however many are on time", () => {
  const onTime = [30_000, 200, 300, 100, 250, 220];
  const late = [36_000, 10_000, 10_100, 9_900, 10_050, 10_000];
  for (const others of [3, 63]) {
    const { peak, most } = scaleOf([...Array.from({ length: others }, () => onTime), late]);
    assert.deepEqual({ peak, most }, { peak: 10_100, most: 36_000 });
  }
});

test("parts with the same slice are one block with several holders", () => {
  const part = (replica: number, start: number[], stop: number[]): ArrayPart => ({
    replica,
    host: "a",
    device: `cpu:${replica}`,
    start,
    stop,
    size_bytes: 8,
  });
  const parts = [part(0, [0, 0, 0], [1, 4, 2]), part(1, [0, 0, 0], [1, 4, 2]), part(2, [1, 0, 0], [2, 4, 2])];

  const first = blocksOf(parts, [0]);
  assert.deepEqual(
    first.map((block) => block.holders.map((holder) => holder.replica)),
    [[0, 1]],
  );
  assert.deepEqual(
    [first[0]!.start, first[0]!.stop],
    [
      [0, 0],
      [4, 2],
    ],
  );
  assert.deepEqual(blocksOf(parts, [1])[0]!.holders[0]!.replica, 2);
});

test("the fitted bandwidth of a point that lies on the fit is that of the point", () => {
  const points = [
    { size_bytes: 1e6, samples: 1, p10_us: 110, p50_us: 110, p90_us: 110 },
    { size_bytes: 1e7, samples: 1, p10_us: 1010, p50_us: 1010, p90_us: 1010 },
  ].map((point) => {
    const busbw = (1.5 * point.size_bytes) / (point.p50_us * 1000);
    return { ...point, p10_busbw: busbw, p50_busbw: busbw, p90_busbw: busbw };
  });
  const sweep = { ...collectives.sweeps[0]!, points, latency_us: 10, bandwidth: 10, limit: null };

  for (const point of points) {
    assert.ok(Math.abs(fittedBusbw(sweep, point.size_bytes)! / point.p50_busbw - 1) < 1e-9);
  }
});

test("ratios near one are called alike", () => {
  const row = runs.rows[0]!;
  assert.equal(ratioText({ ...row, ratio: 0.5, verdict: "faster" }), "0.500× faster");
  assert.equal(ratioText({ ...row, ratio: 2, verdict: "slower" }), "2.00× slower");
  assert.equal(ratioText({ ...row, ratio: null, verdict: "only in one" }), "only in one");
});

test("the ghost has the points of the baseline that lie in the chart, and tells how many times as fast", () => {
  const [sweep] = collectives.sweeps;
  const [first, second] = sweep!.points;
  const slower = { ...first!, p50_us: 2 * first!.p50_us };
  const points = [slower, { ...second!, size_bytes: 1 }, { ...second!, size_bytes: 1e12 }];
  const compared = { ...sweep!, baseline: { name: "monday", n: 2, transport: "tcp", points } };

  assert.deepEqual(ghostOf(compared), [slower]);
  assert.equal(timesAsFast(compared, first!), 2);
  assert.equal(timesAsFast(compared, second!), null);
  assert.deepEqual([ghostOf(sweep!), timesAsFast(sweep!, first!)], [[], null]);
});

const COLUMNS = [
  { title: "op", width: 80 },
  { title: "count", width: 60, rank: 2 },
  { title: "p99", width: 50, rank: 1 },
  { title: "cv", width: 50, rank: 2 },
  { title: "how", width: 300, rank: 1, least: 100 },
];

test("columns are folded away as far as there is no room, those that matter least first", () => {
  const at = (room: number) => {
    const { folded, cut } = fold(COLUMNS, room);
    return [[...folded].join(" "), cut.get("how")];
  };
  assert.deepEqual(at(540), ["", undefined]);
  assert.deepEqual(at(400), ["", 160]); // a text is cut off before anything is folded away
  assert.deepEqual(at(339), ["cv", 149]);
  assert.deepEqual(at(280), ["cv count", 150]);
  assert.deepEqual(at(150), ["cv count how", undefined]);
  assert.deepEqual(at(10), ["cv count how p99", undefined]); // the others can only be scrolled
});

test("of texts that are cut off the short ones stay whole where they need less than their part", () => {
  const texts = [120, 130, 900, 900].map((width, index) => ({ title: String(index), width, least: 100 }));

  assert.deepEqual(Object.fromEntries(fold(texts, 550).cut), { 2: 150, 3: 150 });
  assert.deepEqual([...fold(texts, 10).cut.values()], [100, 100, 100, 100]);
});

test("elements are sorted by their size, infinities and NaN too", () => {
  const cells = [1, "inf", -2, "nan", "-inf"];
  const ordered = [...cells].sort((one, other) => (orderOf(one) < orderOf(other) ? -1 : 1));

  assert.deepEqual(ordered.slice(2), [-2, 1, "inf"]);
});

test("an axis over many powers of ten has fewer numbers between them", () => {
  assert.deepEqual(logTicks(0.9, 21), [1, 2, 5, 10, 20]);
  assert.deepEqual(logTicks(1, 100).map(Math.round), [1, 3, 10, 30, 100]);
  assert.deepEqual(logTicks(1, 1e4), [1, 10, 100, 1000, 10_000]);
});

test("labels of an axis that is too narrow for all of them do not run into one another", () => {
  const at = (tick: number) => 30 * Math.log10(tick);
  const width = () => 40;

  assert.deepEqual(apart([1, 2, 5, 10, 20, 50, 100], at, width), [1, 50]);
  assert.deepEqual(apart([1, 100, 10_000], at, width), [1, 100, 10_000]);
});

test("reductions tell rows apart where one operation of one size has several", () => {
  const row = { ...collectives.snapshot.table[0]!, op: "all_reduce", redop: "sum" };
  const redop = (one: typeof row) => one.redop;
  const mean = { ...row, redop: "mean" };

  assert.equal(tellsApart([row, { ...mean, size_bytes: 2 * row.size_bytes }], redop), false);
  assert.equal(tellsApart([row, mean], redop), true);
  assert.equal(
    tellsApart([row, mean], (one) => one.dtype),
    false,
  );
});

test("of a timing table in little room the column that tells who waits stays, and late and type go first", () => {
  const columns = columnsOf({ name: "µs", us: 1 }, recorded.collectives.snapshot.table);
  const folded = (room: number) =>
    fold(
      columns.map((column) => ({ ...column, width: 80 })),
      room,
    ).folded;

  assert.ok(columns.some(({ title }) => title === "late") && columns.some(({ title }) => title === "type"));
  for (let room = 400; room < 80 * columns.length; room += 40)
    assert.equal(folded(room).has("wait"), false, `${room}`);
  for (let room = 80; room < 2000; room += 40)
    if (folded(room).has("wait")) assert.ok(folded(room).has("late") && folded(room).has("type"));
});
