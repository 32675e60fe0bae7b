import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, FrameScheduler, REPAINT_MS, setRepaintsPerSecond } from "../src/frames";
import { show, textOf } from "./page";
import * as recorded from "./recorded";

/** A clock that goes on only when told to. */
class ManualClock implements Clock {
  time = 0;
  #waiting: { at: number; run: () => void; handle: number }[] = [];
  #handles = 0;

  now() {
    return this.time;
  }
  after(ms: number, run: () => void) {
    this.#waiting.push({ at: this.time + ms, run, handle: ++this.#handles });
    return this.#handles;
  }
  cancel(handle: number) {
    this.#waiting = this.#waiting.filter((one) => one.handle !== handle);
  }
  frame(run: () => void) {
    this.after(16, run);
  }
  advance(ms: number) {
    const end = this.time + ms;
    for (;;) {
      this.#waiting.sort((one, other) => one.at - other.at);
      const next = this.#waiting[0];
      if (!next || next.at > end) break;
      this.#waiting.shift();
      this.time = next.at;
      next.run();
    }
    this.time = end;
  }
}

function counting() {
  const clock = new ManualClock();
  const painted: number[] = [];
  const frames = new FrameScheduler(() => painted.push(clock.time), clock);
  return { clock, painted, frames };
}

test("ten thousand requests in a second are at most ten repaints, and the last is not lost", () => {
  const { clock, painted, frames } = counting();
  for (let request = 0; request < 10_000; request += 1) {
    frames.request();
    clock.advance(0.1);
  }
  const last = clock.time;
  frames.request();
  clock.advance(1000);

  assert.ok(painted.length <= 11, `${painted.length} repaints`);
  assert.ok(painted.at(-1)! >= last);
  for (let i = 1; i < painted.length; i += 1) assert.ok(painted[i]! - painted[i - 1]! >= REPAINT_MS);
});

test("the first request is painted with the next frame", () => {
  const { clock, painted, frames } = counting();
  frames.request();
  clock.advance(20);

  assert.equal(painted.length, 1);
});

test("where repaints are rare, what people do is answered as soon as elsewhere", (context) => {
  setRepaintsPerSecond(1);
  context.after(() => setRepaintsPerSecond(10));
  const { clock, painted, frames } = counting();
  frames.request();
  clock.advance(50);
  frames.request(); // a model
  clock.advance(200);
  assert.equal(painted.length, 1);
  frames.request(REPAINT_MS);
  frames.request();
  clock.advance(20);
  assert.equal(painted.length, 2);
  clock.advance(2000);
  assert.equal(painted.length, 2, "that repaint had the model, too");
});

test("a hidden view paints nothing, and once when it is seen again", () => {
  const { clock, painted, frames } = counting();
  frames.setVisible(false);
  for (let i = 0; i < 50; i += 1) {
    frames.request();
    clock.advance(50);
  }
  assert.equal(painted.length, 0);

  frames.setVisible(true);
  clock.advance(1000);
  assert.equal(painted.length, 1);
});

test("a view that is hidden between request and frame paints when it is seen again", () => {
  const { clock, painted, frames } = counting();
  frames.request();
  frames.setVisible(false);
  clock.advance(500);
  assert.equal(painted.length, 0);
  frames.setVisible(true);
  clock.advance(500);

  assert.equal(painted.length, 1);
});

test("nothing is painted after the end", () => {
  const { clock, painted, frames } = counting();
  frames.request();
  frames.stop();
  clock.advance(1000);

  assert.equal(painted.length, 0);
});

test("tests wait for a repaint also while their process stands still", async () => {
  const told = (step: number) => ({
    ...recorded.collectives,
    overview: { ...recorded.collectives.overview, step },
  });
  const shown = show("overview", told(7001));
  const first = shown.update(told(7002));
  while (!textOf(shown.root).includes("step 7002")) await new Promise((resolve) => setTimeout(resolve, 1));
  const second = shown.update(told(7003)); // which has to wait 100 ms since the one before
  for (const until = performance.now() + 300; performance.now() < until;);
  await second;

  assert.match(textOf(shown.root), /step 7003/);
  await first;
});
