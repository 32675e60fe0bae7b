// Every token that is used has a value: a font without one is drawn as 10px sans-serif, a colour as black, and nothing fails.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { join } from "node:path";

const files = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => /\.(css|tsx?)$/.test(name))
  .map((name) => readFileSync(join("src", name), "utf8"));
const found = (pattern: RegExp) =>
  new Set(files.flatMap((text) => [...text.matchAll(pattern)].map(([, name]) => name!)));

test("every token that is used is defined", () => {
  const defined = found(/--wb-([a-z0-9-]+)["\]]*\s*:/g);
  const used = [...found(/var\(--wb-([a-z0-9-]+)\)/g), ...found(/\bread\("([a-z-]+)"\)/g)];
  assert.deepEqual(
    used.filter((name) => !defined.has(name)),
    [],
  );
});
