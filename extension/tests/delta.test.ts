import assert from "node:assert/strict";
import { test } from "node:test";
import { merge } from "../src/delta";
import { change, collectives, stuck } from "./recorded";

test("the older snapshot and the change give the newer one", () => {
  assert.deepEqual(merge(collectives.snapshot, change), stuck.snapshot);
});

test("a change that begins after the state cannot be merged", () => {
  assert.equal(merge({ ...collectives.snapshot, version: change.since - 1 }, change), null);
});

test("a change that is older than the state does nothing", () => {
  const newer = { ...stuck.snapshot, version: change.version + 1 };

  assert.equal(merge(newer, change), newer);
});
