// Pauses of the notebook: no step and no computing, whether steps compute for microseconds or for seconds.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { GroupView, LaneItem } from "../src/models";
import { partsOfRow } from "../src/overview/lanes";
import { lanesBegin, newestSteps, pausesOf, timeline } from "../src/overview/pauses";
import { collectives } from "./recorded";

const MS = 1e6;
const S = 1e9;
const recorded = collectives.snapshot.groups[0]!;
const ROW = { replica: 0, lane: 0 };

interface Made {
  /** When the collective of each step begins, in ns. */
  begins: readonly number[];
  length: number;
  /** When each step was sent; nobody has told if there is none. */
  sent?: readonly number[] | undefined;
  /** Number of the first step. */
  first?: number;
}

/** A group whose steps have one collective each. */
function made({ begins, length, sent, first = 0 }: Made): GroupView {
  const items: LaneItem[] = begins.map((begin, index) => ({
    ...recorded.items[0]!,
    ...{ step: first + index, seq: 0, ready_ns: begin, enter_ns: [begin], mean_enter_ns: begin },
    ...{ end_ns: [begin + length], last_end_ns: begin + length },
  }));
  const steps = items.map(({ step }, index) => {
    const next = begins[index + 1];
    const seconds = next === undefined ? null : (next - begins[index]!) / S;
    return { ...recorded.steps[0]!, step, seconds };
  });
  const told = sent && { steps: items.map(({ step }) => step), at_ns: [...sent] };
  return { ...recorded, n: 1, items, steps, told: { ...recorded.told, sent: told ?? null } };
}

/** Steps that were called so many ns after the first, each of which computes for long before 2 ms of communication. */
function called(calls: readonly number[], computes: number, first = 0): GroupView {
  return made({ begins: calls.map((call) => call + computes), length: 2 * MS, sent: calls, first });
}

function computed(group: GroupView): number[][] {
  return partsOfRow(group, ROW, pausesOf(group))
    .flat()
    .filter(({ kind }) => kind === "compute")
    .map(({ from, to }) => [from, to]);
}

for (const seconds of [1.2, 6]) {
  const length = seconds * S + 2 * MS;

  test(`steps of ${seconds} s with 2 ms of communication are steps, and no pauses`, () => {
    const calls = Array.from({ length: 20 }, (_, step) => 5 * S + step * (length + MS));
    const group = called(calls, seconds * S);
    const time = timeline(group, true);

    assert.equal(time.usual, length);
    assert.deepEqual(time.breaks, []);
    assert.equal(time.length, 20 * length + 19 * MS);
    assert.deepEqual(newestSteps(group, 16), { first: 4, last: 19 });
    assert.deepEqual(
      computed(group),
      calls.map((call) => [call, call + seconds * S]),
    );
    // Of lanes from step 4 on, which begin as that was sent, two thousandths are communication at most.
    assert.equal(lanesBegin(group, time, 4), calls[4]);
  });

  test(`a pause between cells with steps of ${seconds} s is one, and what these compute is drawn`, () => {
    const calls = [0, 40, 75, 110].map((at) => at * S);
    const group = called(calls, seconds * S);
    const time = timeline(group, true);

    assert.deepEqual(
      time.breaks.map((gap) => gap.ns),
      [40 * S - length, 35 * S - length, 35 * S - length],
    );
    assert.equal(time.length, 7 * length);
    assert.deepEqual(newestSteps(group, 16), { first: 3, last: 3 });
    assert.equal(lanesBegin(group, time, 3), 110 * S);
    assert.deepEqual(
      computed(group),
      calls.map((call) => [call, call + seconds * S]),
    );
  });

  test(`steps of ${seconds} s are no pauses where nobody has told when they were sent`, () => {
    const begins = Array.from({ length: 20 }, (_, step) => step * length);
    const group = made({ begins, length: 2 * MS });

    assert.deepEqual(timeline(group, true).breaks, []);
    assert.deepEqual(newestSteps(group, 16), { first: 4, last: 19 });
    assert.equal(computed(group).length, 19); // of the first nobody knows when it began
    assert.equal(lanesBegin(group, pausesOf(group), 4), begins[3]! + 2 * MS);
  });
}

test("where each short step runs in a cell of its own, the newest one is shown, and as long as can be seen", () => {
  const calls = [0, 23, 61, 84, 121, 150, 174, 207].map((at) => at * S);
  const group = called(calls, MS);
  const time = timeline(group, true);

  assert.equal(time.usual, 3 * MS);
  assert.equal(time.breaks.length, 7);
  assert.equal(time.length, 15 * 3 * MS);
  assert.deepEqual(newestSteps(group, 16), { first: 7, last: 7 });
  assert.equal(lanesBegin(group, time, 7), 207 * S);
});

test("what a loop does between its short steps is no pause, and no computing", () => {
  const calls = Array.from({ length: 20 }, (_, step) => step * 30 * MS);
  const group = called(calls, MS);

  assert.deepEqual(timeline(group, true).breaks, []);
  assert.deepEqual(newestSteps(group, 16), { first: 4, last: 19 });
  assert.deepEqual(
    computed(group),
    calls.map((call) => [call, call + MS]),
  );
});

test("a step that takes much longer than the others is no pause", () => {
  const calls = [0, 1, 2, 60, 61].map((at) => at * S); // the third one takes 58 s
  const group = made({ begins: [...calls.slice(1), 62 * S], length: 2 * MS, sent: calls });

  assert.deepEqual(timeline(group, true).breaks, []);
  assert.deepEqual(newestSteps(group, 16), { first: 0, last: 4 });
});

test("steps that were sent ahead begin as the one before is over", () => {
  const begins = [10, 20, 30].map((ms) => ms * MS);
  const group = made({ begins, length: 2 * MS, sent: [1, 2, 3], first: 5 });

  assert.equal(pausesOf(group).usual, 10 * MS);
  assert.deepEqual(computed(group), [
    [12 * MS, 20 * MS], // of the first one nobody knows when the one before was over
    [22 * MS, 30 * MS],
  ]);
});

test("a step that was sent again begins with that", () => {
  const group = called([0, 60 * S], S);
  group.told.sent = { steps: [0, 1, 1], at_ns: [0, 2 * S, 60 * S] };

  assert.deepEqual(computed(group), [
    [0, S],
    [60 * S, 61 * S],
  ]);
});

test("no computing is drawn in a pause that lies within the steps that are picked out, also of what is typical of all", () => {
  for (const sent of [undefined, [0, 10, 20, 60_000, 60_010].map((ms) => ms * MS)]) {
    const group = made({ begins: [8, 18, 28, 60_008, 60_018].map((ms) => ms * MS), length: 2 * MS, sent });
    for (const row of [ROW, { replica: -1, lane: -1 }]) {
      const parts = partsOfRow(group, row, pausesOf(group)).flat();
      for (const { from, to } of parts) assert.ok(to <= 30 * MS || from >= 60_000 * MS);
      assert.equal(parts.filter(({ kind }) => kind === "compute").length, sent ? 5 : 3);
    }
  }
});

test("a long pause is shortened, and times inside collectives keep their length", () => {
  const time = timeline(made({ begins: [0, 1000, 2000, 1_000_000, 1_001_000], length: 100 }), true);

  assert.equal(time.toAxis(1100) - time.toAxis(1000), 100);
  assert.equal(time.toAxis(1_000_000) - time.toAxis(2100), 1000);
  assert.equal(time.fromAxis(time.toAxis(1_000_050)), 1_000_050);
  assert.deepEqual(
    time.breaks.map((gap) => gap.ns),
    [997_900],
  );
  assert.deepEqual(time.since, [-Infinity, -Infinity, -Infinity, 1_000_000, 1_000_000]);
});

test("computing between steps is no pause: it is as long as it was", () => {
  const time = timeline(made({ begins: [0, 5000, 10_000, 15_000, 1_000_000], length: 100 }), true);

  assert.equal(time.toAxis(5000) - time.toAxis(100), 4900);
  assert.deepEqual(
    time.breaks.map((gap) => gap.ns),
    [984_900],
  );
});

test("with pauses as they are the axis is time", () => {
  const time = timeline(made({ begins: [0, 1000, 2000, 1_000_000], length: 100 }), false);

  assert.equal(time.length, 1_000_100);
  assert.equal(time.toAxis(500_000), 500_000);
  assert.deepEqual(time.breaks, []);
  assert.equal(time.since[3], 1_000_000);
});

test("the steps that are shown go back to the last pause", () => {
  const begins = [0, 1, 2, 62, 63, 64].map((at) => at * S);
  const group = made({ begins, length: MS, first: 1 });

  assert.deepEqual(newestSteps(group, 16), { first: 4, last: 6 });
  assert.deepEqual(newestSteps(group, 2), { first: 5, last: 6 });
});

test("lanes begin a usual step before the first collective where nobody knows more than that there was a pause", () => {
  const group = made({ begins: [0, 10, 20, 60_000, 60_010].map((ms) => ms * MS), length: 2 * MS });
  const pauses = pausesOf(group);

  assert.equal(lanesBegin(group, pauses, 2), 12 * MS);
  assert.equal(lanesBegin(group, pauses, 3), 59_990 * MS);
});
