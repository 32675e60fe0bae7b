import assert from "node:assert/strict";
import { test } from "node:test";
import { Kept } from "../src/lab/clusters/kept";
import {
  AS_USUAL,
  consistent,
  isResizable,
  presetsOf,
  readOptions,
} from "../src/lab/clusters/worker_options";

const trans = { __: (text: string) => text, _n: (one: string) => one };

/** What JupyterLab keeps. */
class State {
  readonly kept = new Map<string, unknown>();
  fetch(id: string): Promise<unknown> {
    return Promise.resolve(this.kept.get(id));
  }
  save(id: string, value: unknown): Promise<unknown> {
    this.kept.set(id, structuredClone(value));
    return Promise.resolve();
  }
}

async function read(state: State): Promise<Kept> {
  return new Promise((done) => {
    const kept: Kept = new Kept(state, () => done(kept));
  });
}

test("a preset asks for nothing that its kind does not have", () => {
  for (const [, preset] of presetsOf(trans)) assert.deepEqual(consistent(preset), preset);
  const all = { ...AS_USUAL, replicas: 1, maximum: 4, threads: true };
  assert.deepEqual(consistent({ ...all, kind: "gpu" }), { ...all, kind: "gpu", threads: false });
  assert.deepEqual(consistent({ ...all, kind: "tpu" }), { ...all, kind: "tpu", threads: false, maximum: 0 });
  assert.deepEqual(consistent(all), { ...all, maximum: 0 });
});

test("only replicas with a process each can be more or fewer", () => {
  const resizable = presetsOf(trans).map(([, preset]) => isResizable(preset));
  assert.deepEqual(resizable, [true, false, true, true, false]);
});

test("what another version kept is left out", () => {
  for (const kept of [
    undefined,
    null,
    3,
    { replicas: "3" },
    { kind: "quantum" },
    { threads: 1 },
    { replicas: 300 },
    { maximum: 1 },
  ])
    assert.deepEqual(readOptions(kept), AS_USUAL);
  assert.deepEqual(readOptions({ replicas: 3, queue: "x" }), { ...AS_USUAL, replicas: 3 });
});

test("folded sections and the options of the last start are kept", async () => {
  const state = new State();
  const kept = await read(state);
  assert.equal(kept.isFolded("panes"), false);
  kept.fold("panes", true);
  kept.fold("layouts", true);
  kept.fold("layouts", false);
  kept.keepOptions({ ...AS_USUAL, replicas: 5 });

  const later = await read(state);
  assert.deepEqual(
    ["panes", "layouts"].map((name) => later.isFolded(name)),
    [true, false],
  );
  assert.equal(later.options.replicas, 5);
});
