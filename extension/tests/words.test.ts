import assert from "node:assert/strict";
import { test } from "node:test";
import type { TranslationBundle } from "@jupyterlab/translation";
import { skippedWords } from "../src/lab/words";

/** Says everything in English, as JupyterLab does without a language pack. */
const trans: TranslationBundle = {
  __: (text: string) => text,
  _n: (one: string, many: string, n: number, ...args: unknown[]) =>
    (n === 1 ? one : many).replace("%1", String(args[0])),
};

test("what a page was too slow for is told with what that means, and nothing where it keeps up", () => {
  assert.deepEqual(skippedWords(0, trans), ["", ""]);
  const [one, help] = skippedWords(1, trans);
  assert.equal(one, "skipped 1 update to keep up");
  assert.match(help, /faster than this page.*newest state, and complete/);
  assert.equal(skippedWords(1234, trans)[0], "skipped 1234 updates to keep up");
});
