import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { codeFor } from "../src/lab/clusters/cell_code";
import { FrameScheduler } from "../src/frames";
import { followMotion } from "../src/lab/motion";
import { followTerms } from "../src/lab/terms";
import type { TranslationBundle } from "@jupyterlab/translation";
import { titleOf } from "../src/lab/words";
import type { ViewName } from "../src/views";
import type { ClusterInfo } from "../src/lab/server/messages";
import { Settings, SETTINGS } from "../src/lab/settings";
import { sayFieldTerms, wording } from "../src/parts/terms";
import "./page";

interface Schema {
  properties: Record<
    string,
    { default: unknown; title: string; items?: { oneOf: { const: ViewName; title: string }[] } }
  >;
}
const schema = JSON.parse(readFileSync("schema/plugin.json", "utf8")) as Schema;

/** A registry with the settings of the schema, of which a person changes some. */
function registry() {
  const composite = Object.fromEntries(
    Object.entries(schema.properties).map(([key, property]) => [key, property.default]),
  );
  const slots = new Set<() => void>();
  const loaded = {
    composite,
    changed: { connect: (slot: () => void) => Boolean(slots.add(slot)), disconnect: () => true },
    set: (key: string, value: unknown) => {
      composite[key] = value;
      for (const slot of slots) slot();
      return Promise.resolve();
    },
  };
  const load = (name: string) =>
    name === SETTINGS ? Promise.resolve(loaded) : Promise.reject(new Error(name));
  return { load, set: loaded.set } as unknown as ConstructorParameters<typeof Settings>[0] & typeof loaded;
}

test("settings are the schema's, also where nothing keeps them", async () => {
  const kept = new Settings(registry());
  await kept.ready;
  const bare = new Settings(null);
  await bare.ready;
  const { openOnFirstCluster: _, ...others } = schema.properties;
  for (const settings of [kept, bare]) {
    assert.equal(settings.statusBar, others["statusBar"]!.default);
    assert.equal(settings.notebookLayouts, others["notebookLayouts"]!.default);
    assert.equal(settings.connectNewNotebooks, others["connectNewNotebooks"]!.default);
    assert.equal(settings.motion, others["motion"]!.default);
    assert.equal(settings.fieldTerms, others["fieldTerms"]!.default);
    assert.equal(settings.repaintsPerSecond, others["repaintsPerSecond"]!.default);
    assert.equal(settings.followsNewest, false);
  }
  assert.deepEqual(kept.openOnFirstCluster, ["overview"]);
  assert.equal(bare.stored, null);
});

test("the page of settings calls panes as their tabs do", () => {
  const trans = { __: (text: string) => text } as TranslationBundle;
  const { openOnFirstCluster } = schema.properties;
  for (const { const: view, title } of openOnFirstCluster!.items!.oneOf)
    assert.equal(title, titleOf(view, trans));
});

test("settings that are none are as by default", async () => {
  const given = registry();
  const settings = new Settings(given);
  await settings.ready;
  for (const value of [0, 11, "many", null, {}]) {
    await given.set("repaintsPerSecond", value);
    assert.equal(settings.repaintsPerSecond, 10);
  }
  await given.set("openOnFirstCluster", "overview");
  assert.deepEqual(settings.openOnFirstCluster, []);
});

test("views repaint as rarely as the settings say, and once per second with less motion", async () => {
  const given = registry();
  const settings = new Settings(given);
  followMotion(settings);
  await settings.ready;
  /** How long a view waits from one repaint to the next. */
  const rest = () => {
    let waited = 0;
    const clock = { now: () => 0, cancel: () => undefined, frame: (run: () => void) => run() };
    const after = (ms: number) => (waited = ms);
    const frames = new FrameScheduler(() => undefined, { ...clock, after });
    frames.request();
    frames.request();
    return waited;
  };

  assert.equal(rest(), 100);
  await given.set("repaintsPerSecond", 2);
  assert.equal(rest(), 500);
  await given.set("motion", "reduced");
  assert.ok(document.body.classList.contains("wb-still"));
  assert.equal(rest(), 1000);
  await given.set("repaintsPerSecond", 10);
  await given.set("motion", "system");
  assert.ok(!document.body.classList.contains("wb-still"));
  assert.equal(rest(), 100);
});

test("views say the field's terms where the settings say so", async () => {
  const given = registry();
  const settings = new Settings(given);
  followTerms(settings);
  await settings.ready;
  assert.equal(wording("bandwidth", "busbw"), "bandwidth");
  await given.set("fieldTerms", true);
  assert.equal(wording("bandwidth", "busbw"), "busbw");
  await given.set("fieldTerms", false);
  assert.equal(wording("bandwidth", "busbw"), "bandwidth");

  sayFieldTerms(true); // as a notebook does
  await given.set("statusBar", false);
  assert.equal(wording("bandwidth", "busbw"), "busbw"); // another setting is no news
  sayFieldTerms(false);
});

const cluster = (id: string, kind: string, status: string, workersOf = "") =>
  ({
    id,
    kind,
    workers_of: workersOf,
    connect_code: `cluster = wb.connect("workbench://${id}")`,
    summary: { status },
  }) as ClusterInfo;

test("a new notebook gets workers that wait for one, else a cluster of its own", () => {
  const workers = cluster("aa", "workers", "live");
  const code = (...clusters: ClusterInfo[]) => codeFor({ clusters }).split("\n").at(-1);
  assert.equal(code(), "cluster = wb.connect()");
  assert.equal(code(workers), 'cluster = wb.connect("workbench://aa")');
  assert.equal(code(cluster("bb", "driver", "live", "aa"), workers), "cluster = wb.connect()");
  assert.equal(
    code(cluster("bb", "driver", "stopped", "aa"), workers),
    'cluster = wb.connect("workbench://aa")',
  );
  assert.equal(code(cluster("cc", "workers", "stopped")), "cluster = wb.connect()");
});
