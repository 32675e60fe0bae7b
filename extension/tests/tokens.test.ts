// Every token that is used has a value: a font without one is drawn as 10px sans-serif, a colour as black, and nothing fails.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { join } from "node:path";
import { replicaColour } from "../src/colours";
import { SHAPES } from "../src/shapes";

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

test("names that the bundle shortens belong to no model", () => {
  const [, pattern] = /const INNER =\s*\/(.+)\/;/.exec(readFileSync("build.mjs", "utf8"))!;
  const inner = new RegExp(pattern!);
  assert.ok(inner.test("context") && !inner.test("replica"));
  assert.deepEqual(
    Object.values(SHAPES).flatMap((shape) => Object.keys(shape).filter((name) => inner.test(name))),
    [],
  );
});

/** How much light a colour gives, from 0 to 1, as contrasts are computed with. */
function luminance(channels: readonly number[]): number {
  const [red, green, blue] = channels.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

/** Red, green and blue of such as "hsl(120,60%,22%)". */
function channelsOf(colour: string): number[] {
  const [hue, saturation, light] = colour.match(/[\d.]+/g)!.map(Number) as [number, number, number];
  const strength = (saturation / 100) * Math.min(light / 100, 1 - light / 100);
  return [0, 8, 4].map((shift) => {
    const k = (shift + hue / 30) % 12;
    return light / 100 - strength * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  });
}

test("the computed colours of replicas have 3:1 on light and on dark ground", () => {
  const [light, dark] = readFileSync("src/style.css", "utf8").split('&[data-tone="dark"]');
  for (const [sheet, ground] of [
    [light!, 1],
    [dark!, luminance([33, 33, 33].map((part) => part / 255))],
  ] as const) {
    const value = (token: string) => new RegExp(`--wb-${token}: (.+);`).exec(sheet)![1]!;
    for (let replica = 8; replica < 512; replica += 1) {
      const colour = replicaColour(replica).replace(/var\(--wb-(.+?)\)/, (_, token: string) => value(token));
      const own = luminance(channelsOf(colour));
      const contrast = (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05);
      assert.ok(contrast >= 3, `replica ${replica}: ${contrast.toFixed(2)}`);
    }
  }
});
