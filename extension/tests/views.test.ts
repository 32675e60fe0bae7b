import assert from "node:assert/strict";
import { test } from "node:test";
import { fitting } from "../src/parts/painting";
import type {
  Collectives,
  DatasetSharding,
  EventItem,
  Models,
  ReplicaNode,
  Summary,
  Verdict,
} from "../src/models";
import { replicaColour } from "../src/colours";
import { layoutOf, stateOf, together } from "../src/topology/places";
import { memoryText } from "../src/format";
import { OPEN } from "../src/view";
import { VIEWS, type ViewName } from "../src/views";
import { sayFieldTerms } from "../src/parts/terms";
import { Selection } from "../src/selection";
import { binsOf } from "../src/values/distribution";
import { placeOf, rangeOf } from "../src/values/elements";
import { button, drawn, press, rooms, settled, show, textOf, written } from "./page";
import * as recorded from "./recorded";

const MODELS: { [K in ViewName]: Models[K] } = {
  overview: recorded.collectives,
  topology: recorded.topology,
  values: recorded.values,
  array_sharding: recorded.arrayUneven,
  dataset_sharding: recorded.datasetFiles,
  input: recorded.inputStarving,
  data_service: recorded.serviceLive,
  servers: recorded.serversLive,
  collectives: recorded.stuck,
  collective_table: recorded.collectives,
  lanes: recorded.collectives,
  sweep: recorded.collectives,
  heat_map: recorded.collectives,
  stuck: recorded.stuck,
  log: recorded.lost,
  devices: recorded.devices,
  runs: recorded.runs,
  replay: recorded.replay,
};
const NAMES = Object.keys(VIEWS) as ViewName[];
const PAYLOAD = `<img src=x onerror="globalThis.hit=1"><script>globalThis.hit=1</script>`;

/** The model with a payload in the place of every text. */
function poisoned<T>(value: T): T {
  if (typeof value === "string") return PAYLOAD as T;
  if (Array.isArray(value)) return value.map(poisoned) as T;
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, poisoned(part)])) as T;
}

for (const name of NAMES) {
  test(`${name} draws its recorded model, and is named`, () => {
    const shown = show(name, MODELS[name]);

    assert.ok(textOf(shown.root).length > 20);
    assert.equal(shown.root.querySelector(".wb")?.getAttribute("aria-label"), VIEWS[name].title);
    shown.unmount();
    assert.equal(shown.root.childNodes.length, 0);
  });

  test(`${name} shows markup in user data as text`, () => {
    const shown = show(name, poisoned(MODELS[name]));

    assert.match(textOf(shown.root), /<img src=x onerror=/);
    assert.deepEqual([...shown.root.querySelectorAll("img, script, iframe, object, a")], []);
    for (const element of shown.root.querySelectorAll("*")) {
      assert.deepEqual(
        element.getAttributeNames().filter((attribute) => attribute.startsWith("on")),
        [],
      );
    }
    assert.equal(Reflect.get(globalThis, "hit"), undefined);
    shown.unmount();
  });

  test(`${name} draws a model in which there is nothing`, () => {
    const nothing: Collectives = {
      status: "live",
      silent: [],
      sweeps: [],
      overview: { ...recorded.collectives.overview, group: "", replicas: 0 },
      snapshot: { ...recorded.collectives.snapshot, table: [], internal: [], groups: [], events: [] },
    };
    const empty: Partial<Models> = {
      topology: { run: "r", status: "live", hosts: [], strategies: [] },
      values: { values: [], elements: null, looked_at: 0, first: null, steps: null },
      devices: { run: "r", status: "live", devices: [] },
      runs: { folder: "runs", runs: [], compared: [], rows: [] },
      replay: {
        ...recorded.replay,
        collectives: nothing,
        topology: null,
        devices: null,
        values: null,
        array_sharding: null,
        dataset_sharding: null,
        input: null,
        data_service: null,
        servers: null,
        notes: [],
        first_step: -1,
        last_step: -1,
      },
      array_sharding: { ...recorded.arrayUneven, parts: [], shape: [] },
      dataset_sharding: { ...recorded.datasetFiles, readers: [], counts: [], positions: 0, marks: [] },
      input: { ...recorded.inputMeasured, sentence: "Nothing was read yet.", advice: "", pipelines: [] },
      data_service: { ...recorded.serviceWaiting, jobs: [], workers: [], datasets: 0 },
      servers: { ...recorded.serversLive, servers: [], workers: [], queue: null },
    };
    const shown = show(name, empty[name] ?? nothing);

    assert.ok(textOf(shown.root).length > 0);
    shown.unmount();
  });
}

for (const name of [
  "topology",
  "array_sharding",
  "dataset_sharding",
  "input",
  "data_service",
  "servers",
  "lanes",
  "sweep",
  "heat_map",
] as const) {
  test(`${name} has a table twin`, async () => {
    const shown = show(name, MODELS[name]);
    assert.equal(shown.root.querySelector("[role=grid]"), null);

    button(shown.root, "Table").click();
    await drawn();

    assert.ok(shown.root.querySelectorAll("[role=grid] tbody tr").length > 1);
    assert.equal(button(shown.root, "Table").getAttribute("aria-pressed"), "true");
    shown.unmount();
  });
}

test("the timing table has the figures of the model", () => {
  const shown = show("collective_table", recorded.collectives);
  const row = recorded.collectives.snapshot.table[0]!;

  const cells = [...shown.root.querySelectorAll("tbody tr:first-child td")].map(textOf);
  assert.equal(cells[0], row.op);
  assert.ok(cells.includes(row.count.toLocaleString("en-US")));
  assert.ok(cells.includes(`replica ${row.late_replica} on ${row.late_host}`));
  shown.unmount();
});

/** Every heading of every table, each with its tooltip; of tables that only some recorded models have, too. */
async function headings(of: readonly ViewName[] = NAMES): Promise<[heading: string, tooltip: string][]> {
  const found: [string, string][] = [];
  const models: [ViewName, Models[ViewName]][] = Object.entries(MODELS) as [ViewName, Models[ViewName]][];
  models.push(["values", recorded.valuesElements], ["dataset_sharding", recorded.datasetRunning]);
  for (const [name, model] of models.filter(([name]) => of.includes(name))) {
    const shown = show(name, model);
    for (const one of shown.root.querySelectorAll<HTMLElement>("[aria-label=Table]")) one.click();
    await drawn();
    for (const cell of shown.root.querySelectorAll("th"))
      found.push([textOf(cell), cell.getAttribute("title") ?? ""]);
    shown.unmount();
  }
  return found;
}

test("every heading says plain words, or the field's terms on request, and the others in its tooltip", async () => {
  const plain = await headings();
  assert.deepEqual(
    plain.filter(([heading, tooltip]) => !tooltip && heading),
    [],
  );
  sayFieldTerms(true);
  const inTerms = await headings(["collective_table", "lanes", "sweep", "topology", "values"]);
  sayFieldTerms(false);

  const terms = [
    "op",
    "dtype",
    "redop",
    "n",
    "p50",
    "p99",
    "cv",
    "algbw",
    "busbw",
    "seq",
    "pid",
    "std",
    "L2",
  ];
  const said = new Map(inTerms);
  for (const term of terms) {
    assert.ok(!plain.some(([heading]) => heading.split(" ").includes(term)), term);
    assert.ok(said.has(term), term);
  }
  assert.equal(said.get("algbw"), "data rate: algorithm bandwidth of the latest");
  assert.ok(plain.some((pair) => pair.join() === "data rate,algbw: algorithm bandwidth of the latest"));
});

test("what was chosen changes the words of views that are drawn", async () => {
  const shown = show("collective_table", recorded.collectives);
  sayFieldTerms(true);
  await settled();
  assert.match(textOf(shown.root), /busbw.*r\d@/);
  sayFieldTerms(false);
  await settled();
  assert.match(textOf(shown.root), /bandwidth.*replica \d on /);
  shown.unmount();
});

test("rows stay sorted when the words of headings change", async () => {
  const shown = show("collective_table", recorded.collectives);
  const sortedBy = () => textOf(shown.root.querySelector("[aria-sort]"));
  const heading = [...shown.root.querySelectorAll("th")].find((one) => textOf(one) === "bandwidth")!;
  heading.click();
  await drawn();
  assert.equal(sortedBy(), "bandwidth ▲");
  sayFieldTerms(true);
  await settled();
  assert.equal(sortedBy(), "busbw ▲");
  sayFieldTerms(false);
  await settled();
  assert.equal(sortedBy(), "bandwidth ▲");
  shown.unmount();
});

test("the banner names the collective, the missing replica and what it did last", () => {
  const shown = show("stuck", recorded.stuck);
  const stuck = recorded.stuck.snapshot.groups.find((group) => group.stuck)!.stuck!;

  const text = textOf(shown.root.querySelector("[role=alert]"));
  assert.match(text, new RegExp(`all_reduce #${stuck.seq + 1}: waiting for replica \\{3\\}`));
  assert.match(
    text,
    /replica 3 is at record\.py:\d+ in wait_for, for \d+ s; it last did all_reduce #1 at record\.py:\d+/,
  );
  shown.unmount();
});

test("the banner says that the missing replica is lost", () => {
  const { snapshot } = recorded.stuck;
  const { generation } = snapshot.groups.find((group) => group.stuck)!;
  const lost = recorded.lost.snapshot.events.find((event) => event.name === "replica_lost")!;
  const events = [
    { ...lost, key: "a", replica: 3, generation, message: "was killed" },
    { ...lost, key: "b", replica: 3, generation: generation - 1, message: "was killed before" },
    { ...lost, key: "c", replica: 0, generation, message: "is another" },
  ];
  const shown = show("stuck", { ...recorded.stuck, snapshot: { ...snapshot, events } });

  const lines = [...shown.root.querySelectorAll("[role=alert] li")].map(textOf);
  assert.equal(lines[0], "replica 3 is lost: was killed");
  assert.equal(lines.length, 2);
  shown.unmount();
});

test("a NaN is marked by a sign and a number, not by colour alone", () => {
  const shown = show("values", recorded.values);

  const marked = [...shown.root.querySelectorAll("td")].map(textOf).filter((text) => text.startsWith("✖"));
  assert.deepEqual(marked[0], "✖ 4");
  assert.match(textOf(shown.root), /● in sync/);
  shown.unmount();
});

test("a straggler is named above the heat map and marked in it", () => {
  written.length = 0;
  const shown = show("heat_map", recorded.collectives);

  assert.match(textOf(shown.root), /▶ late step after step: replica 2, by \d+ ms a step/);
  assert.ok(written.some((text) => text.startsWith("▶ replica 2")));
  shown.unmount();
});

test("names of replicas have the room that they need, however long those of their hosts are", async () => {
  const model = structuredClone(recorded.collectives);
  for (const { lanes } of model.snapshot.groups)
    for (const lane of lanes) lane.label = `r${lane.replica} ip-10-0-0-1${lane.replica} CPU:0`;
  for (const [view, label] of [
    ["lanes", "replica 2 on ip-10-0-0-12"],
    ["heat_map", "▶ replica 2"],
    ["overview", "replica 2"],
  ] as const) {
    rooms.clear();
    const shown = show(view, model);
    assert.ok(rooms.has(label), view);
    for (const [text, room] of rooms) assert.ok(7 * text.length <= room, text);
    if (view === "heat_map") {
      const chart = shown.root.querySelector("[role=application]")!;
      press("Home", chart);
      await settled();
      assert.match(textOf(shown.root.querySelector("output")), /^replica 0 on ip-10-0-0-10, step \d/);
    }
    shown.unmount();
  }
});

test("arrow keys reach every cell of a chart, and its line of text says what is there", async () => {
  const shown = show("heat_map", recorded.collectives);
  const chart = shown.root.querySelector("[role=application]")!;
  const said = () => textOf(shown.root.querySelector("output"));
  const { steps, replicas } = recorded.collectives.snapshot.groups[0]!.lateness;

  press("Home", chart);
  await drawn();
  press("Home", chart);
  await drawn();
  assert.match(said(), new RegExp(`^replica ${replicas[0]} .*step ${steps[0]}:`));
  for (const key of ["ArrowDown", "ArrowRight"]) {
    press(key, chart);
    await drawn();
  }
  assert.match(said(), new RegExp(`^replica ${replicas[1]} .*step ${steps[1]}:`));
  press("End", chart);
  await drawn();
  assert.match(said(), new RegExp(`step ${steps.at(-1)}:`));
  shown.unmount();
});

test("arrow keys reach every cell of a table, Enter on a heading sorts", async () => {
  const shown = show("devices", recorded.devices);
  const focused = () => textOf(document.activeElement);
  const heading = shown.root.querySelector<HTMLElement>("th")!;
  heading.focus();

  press("ArrowDown");
  await drawn();
  assert.equal(focused(), recorded.devices.devices[0]!.host);
  press("End");
  await drawn();
  press("ArrowDown");
  await drawn();
  assert.equal(document.activeElement?.closest("tr")?.getAttribute("aria-rowindex"), "3");
  for (let i = 0; i < 3; i += 1) {
    press("ArrowUp");
    await drawn();
  }
  press("Home");
  await drawn();
  press("ArrowRight");
  await drawn();
  assert.equal(focused(), "device");
  press("Enter");
  await drawn();
  press("Enter");
  await drawn();
  assert.equal(document.activeElement.getAttribute("aria-sort"), "descending");
  assert.equal(textOf(shown.root.querySelectorAll("tbody td")[1]!), "worker 3");
  shown.unmount();
});

test("exactly one cell of a table is in the order of Tab", () => {
  const shown = show("collective_table", recorded.collectives);

  assert.equal(shown.root.querySelectorAll("[tabindex='0']").length, 1);
  shown.unmount();
});

test("a replica that is picked out in one view lights up in the others", async () => {
  const table = show("values", recorded.values);
  const log = show("log", recorded.lost);
  table.root.querySelectorAll<HTMLElement>("tbody tr")[2]!.click();
  await settled();

  assert.equal(table.root.querySelectorAll("tr[aria-selected=true]").length, 1);
  assert.match(textOf(log.root), /only replica 2/);
  button(log.root, "Every replica").click();
  await settled();
  assert.equal(table.root.querySelectorAll("tr[aria-selected=true]").length, 0);
  table.unmount();
  log.unmount();
});

const [GONE, LATE]: [Verdict, Verdict] = [
  recorded.lost.overview.verdict,
  {
    severity: "warning",
    code: "late",
    sentence: "Replica 2 makes everyone wait",
    evidence: "it computes longer",
    link: "heat_map",
    replica: 2,
    step: -1,
  },
];
const SAID = { ...recorded.lost, overview: { ...recorded.lost.overview, verdict: GONE, others: [LATE] } };

/** Takes what a view asks to open, as a pane does. */
function opening(root: HTMLElement): string[] {
  const asked: string[] = [];
  root.addEventListener(OPEN, (event) => {
    event.preventDefault();
    asked.push((event as CustomEvent<{ view: string }>).detail.view);
  });
  return asked;
}

test("the log begins with all that is to be said of the run, with signs, and ways to what explains it", () => {
  const shown = show("log", SAID);
  const asked = opening(shown.root);
  const cards = [...shown.root.querySelectorAll<HTMLElement>(".wb-verdict")];

  assert.deepEqual(
    cards.map((card) => [card.dataset["severity"], textOf(card.querySelector("h4"))]),
    [
      ["error", GONE.sentence],
      ["warning", LATE.sentence],
    ],
  );
  assert.ok(cards.every((card) => card.querySelector("svg.wb-severity")));
  assert.equal(cards[0]!.querySelector("button"), null); // the log explains it
  button(shown.root, "Show the steps →").click();
  assert.deepEqual(asked, ["heat_map"]);
  shown.unmount();

  const watching = { ...GONE, severity: "watching", code: "watching" };
  const early = show("log", { ...SAID, overview: { ...SAID.overview, verdict: watching, others: [] } });
  assert.equal(early.root.querySelector(".wb-verdict"), null);
  early.unmount();
});

test("an alert of the log leads to what explains it, by pointer and by key, and lights up its replica", async () => {
  const selection = new Selection();
  const shown = show("log", SAID, { selection });
  button(shown.root, "Alerts").click();
  await settled();
  const cells = [...shown.root.querySelectorAll<HTMLElement>("td")];
  const lost = cells.find((cell) => textOf(cell) === "replica lost")!;
  assert.equal(
    lost.querySelector<HTMLElement>("[data-severity=error] svg")?.getAttribute("class"),
    "wb-severity",
  );
  assert.equal(cells.find((cell) => textOf(cell) === "stderr")!.querySelector("button"), null);

  lost.querySelector("button")!.click(); // nothing around it can open a view
  await settled();
  assert.match(textOf(shown.root), /wb\.topology\(\) shows it/);
  assert.equal(selection.now.replica, 1);
  selection.toggle(1);
  await settled();

  const asked = opening(shown.root);
  const again = [...shown.root.querySelectorAll<HTMLElement>("td")].find(
    (cell) => textOf(cell) === "replica lost",
  )!;
  again.focus();
  await settled();
  press("Enter", again);
  await settled();
  assert.deepEqual(asked, ["topology"]);
  assert.equal(selection.now.replica, 1);
  assert.doesNotMatch(textOf(shown.root), /shows it/);
  shown.unmount();
});

test("a log inside the overview leads on to the overview's other views", async () => {
  const shown = show("overview", SAID);
  button(shown.root, "Show the log →").click();
  await settled();
  button(shown.root, "Show the steps →").click();
  await settled();
  assert.match(textOf(shown.root), /Latenessby replica and step/);
  shown.unmount();
});

test("the tabs are reached by arrow keys and show one view each", async () => {
  const shown = show("collectives", recorded.collectives);
  const tabs = [...shown.root.querySelectorAll<HTMLElement>("[role=tab]")];
  tabs[0]!.focus();
  for (const title of ["Lanes", "Lateness", "Bandwidth over size", "Alerts and log"]) {
    press("ArrowRight");
    await drawn();
    assert.equal(shown.root.querySelector("[role=tabpanel]")?.getAttribute("aria-label"), title);
  }
  shown.unmount();
});

test("the page does not grow with the number of events", async () => {
  const line = recorded.lost.snapshot.events[0]!;
  const many = (n: number): Collectives => {
    const events: EventItem[] = Array.from({ length: n }, (_, i) => ({
      ...line,
      key: String(i),
      message: `line ${i}`,
    }));
    return { ...recorded.lost, snapshot: { ...recorded.lost.snapshot, events } };
  };
  const shown = show("log", many(100));
  const before = shown.root.querySelectorAll("*").length;
  await shown.update(many(10_000));

  assert.ok(shown.root.querySelectorAll("*").length <= before + 20);
  assert.equal(shown.root.querySelector("[role=grid]")?.getAttribute("aria-rowcount"), "10001");
  shown.unmount();
});

test("a view that is not laid out, such as in a pane behind others, has all its buttons when that is opened", async () => {
  const shown = show("lanes", recorded.collectives);
  await drawn();
  assert.equal(shown.root.querySelectorAll(".wb-actions > *").length >= 4, true);
  assert.equal(shown.root.querySelector("[hidden]"), null);
  assert.throws(() => button(shown.root, "…"));
});

test("a log without lines says whether any may still come", () => {
  const snapshot = { ...recorded.collectives.snapshot, events: [] };
  for (const [status, words] of [
    ["live", "nothing happened yet"],
    ["stopped", "nothing happened"],
  ] as const) {
    const shown = show("log", { ...recorded.collectives, snapshot, status });
    assert.ok([...shown.root.querySelectorAll("*")].some((element) => textOf(element) === words));
    shown.unmount();
  }
});

/** Devices that are all as busy, give or take, but for what `uses` and `memories` say by their places. */
function manyDevices(uses: Record<number, number | null>, memories: Record<number, number> = {}) {
  const [first] = recorded.devices.devices;
  return {
    ...recorded.devices,
    devices: Array.from({ length: 512 }, (_, i) => {
      const use = i in uses ? uses[i]! : 70 + (i % 5);
      return {
        ...first!,
        ...{ key: String(i), name: `worker ${i}`, use_percent: use, recent_percent: [use, use, use] },
        ...{ memory_bytes: 10 * (memories[i] ?? 30 + (i % 3)), memory_limit_bytes: 1000 },
      };
    }),
  };
}

/** The devices that a view draws a line for, and those that it names among its dots. */
async function namedDevices(model: ReturnType<typeof manyDevices>) {
  written.length = 0;
  const shown = show("devices", model);
  await settled();
  const charts = [...shown.root.querySelectorAll('[role="application"]')].map((one) =>
    one.getAttribute("aria-label"),
  );
  shown.unmount();
  return { charts, dots: new Set(written.filter((text) => text.includes(": "))) };
}

test("of 512 devices those that are far from the others are named, and have lines", async () => {
  const { charts, dots } = await namedDevices(manyDevices({ 170: 2, 300: 130 }, { 41: 96 }));
  assert.deepEqual(charts, ["use % and memory % of 512 devices", "Use of devices: 3 in 3 samples"]);
  assert.deepEqual(dots, new Set(["worker 170: 2.00 ↓", "worker 300: 130 ↑", "worker 41: 96.0 ↑"]));
});

test("of 512 devices that are alike none is named, and those whose use is not known are left out", async () => {
  for (const use of [undefined, 0]) {
    const idle = Object.fromEntries(Array.from({ length: 512 }, (_, i) => [i, use ?? 70 + (i % 7)]));
    const { charts, dots } = await namedDevices(manyDevices({ ...idle, 9: null, 12: (use ?? 70) + 0.4 }));
    assert.deepEqual(charts, ["use % and memory % of 511 devices"]);
    assert.equal(dots.size, 0);
  }
});

test("of many devices that are far from the others the farthest eight are named", async () => {
  const far = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [40 * i, 150 + 10 * i]));
  const { dots } = await namedDevices(manyDevices(far));
  assert.deepEqual(
    [...dots].map((text) => Number(/\d+/.exec(text)![0])).sort((one, other) => one - other),
    [160, 200, 240, 280, 320, 360, 400, 440],
  );
});

test("of 512 replicas each has a square that keys reach, however they are spread, and what stands out is named", async () => {
  const [worker] = recorded.topology.hosts[0]!.workers;
  const replica = (i: number) => ({
    group: "g",
    replica: i,
    busy: i !== 500 && i !== 9,
    doing: i === 500 ? "lost" : i === 9 ? "idle" : "step 1",
    news: i === 26 ? "late" : i === 256 ? "not finite" : "",
    busy_share: i / 512,
  });
  const device = (i: number) => ({ name: `cpu:${i}`, kind: "CPU", replicas: [replica(i)] });
  const node = (i: number, devices = [device(i)]) => ({ ...worker!, name: String(i), devices });
  const every = Array.from({ length: 512 }, (_, i) => i);
  const spread = [
    { hosts: [{ name: "a", workers: every.map((i) => node(i)) }], keys: 27 },
    { hosts: [{ name: "a", workers: [node(0, every.map(device))] }], keys: 27 },
    { hosts: every.map((i) => ({ name: `h${i}`, workers: [node(i)] })), keys: 3 },
  ];
  const sizes = new Set<number>();
  for (const { hosts, keys } of spread) {
    const selection = new Selection();
    const shown = show("topology", { ...recorded.topology, strategies: [], hosts }, { selection });
    assert.match(textOf(shown.root), /1 lost: 500.*1 not finite: 256.*1 late: 26.*1 idle.*508 busy/s);
    sizes.add(shown.root.querySelectorAll("*").length);
    const chart = shown.root.querySelector(".wb-chart")!;
    const press = async (key: string) => {
      chart.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      await settled();
    };
    await press("ArrowLeft");
    await press("Home");
    if (hosts.length > 1) for (let i = 0; i < 3; i += 1) await press("ArrowDown");
    for (let i = 1; i < keys; i += 1) await press("ArrowRight");
    const said = textOf(shown.root.querySelector(".wb-readout"));
    assert.match(said, /^replica 26 of g · (a|h26), worker \d+, cpu:26 · ▲ late · step 1 · busy 5\s%/);
    await press("Enter");
    assert.equal(selection.now.replica, 26);
    shown.unmount();
  }
  assert.equal(sizes.size, 1);
});

test("many hosts stand together under the names of the first and the last of them", () => {
  const { workers } = recorded.topology.hosts[0]!;
  const hosts = Array.from({ length: 130 }, (_, i) => ({ name: `h${i}`, workers }));
  const groups = together(hosts);
  assert.deepEqual([groups.length, groups[0]!.name, groups.at(-1)!.name], [44, "h0 – h2", "h129"]);
  assert.equal(groups[0]!.places.length, 3 * together(hosts.slice(0, 1))[0]!.places.length);
});

test("the state of a replica is what matters most about it and its worker", () => {
  const { name: host, workers } = recorded.topology.hosts[0]!;
  const [worker] = workers;
  const [device] = worker!.devices;
  const stateIn = (status: string, replica: Partial<ReplicaNode> | null) =>
    stateOf({
      ...{ host, device, worker: { ...worker!, status } },
      replica: replica ? { group: "g", replica: 0, busy: true, doing: "step 1", ...replica } : undefined,
    });
  assert.deepEqual(
    [
      stateIn("live", {}),
      stateIn("live", { busy: false, doing: "" }),
      stateIn("live", { news: "late" }),
      stateIn("stale", { news: "late" }),
      stateIn("stale", {}),
      stateIn("lost", { news: "not finite" }),
      stateIn("live", { doing: "lost" }),
      stateIn("stopped", { busy: false, doing: "" }),
      stateIn("live", null),
      stateIn("lost", null),
    ],
    ["busy", "idle", "late", "late", "stale", "lost", "lost", "stopped", "free", "lost"],
  );
});

test("a text that has no room ends in dots", () => {
  const canvas = { measureText: (text: string) => ({ width: 6 * text.length }) };
  const fitted = (text: string, room: number) => fitting(canvas as CanvasRenderingContext2D, text, room);
  assert.deepEqual(
    [fitted("cpu:0", 30), fitted("all_reduce #1", 40), fitted("", 0)],
    ["cpu:0", "all_r…", ""],
  );
});

test("squares fill their room, and names have theirs", () => {
  const hosts = Array.from({ length: 64 }, (_, i) => ({ name: `host-${i}`, places: [] }));
  for (const room of [
    { width: 1480, height: 560 },
    { width: 880, height: 280 },
  ]) {
    const { across, columns, width, height, right, down } = layoutOf(room, hosts, 8);
    const rows = Math.ceil(64 / across);
    assert.ok(right - 14 >= 49 && width <= right - 14 && width >= 10 && height >= 5, `${width} × ${height}`);
    assert.ok(across * right - 14 <= room.width + 1);
    assert.ok((rows - 1) * down + 18 + Math.ceil(8 / columns) * height > room.height * 0.67);
  }
});

test("each replica has a colour of its own, which never comes again", () => {
  const colours = Array.from({ length: 2048 }, (_, replica) => replicaColour(replica));
  assert.equal(new Set(colours).size, colours.length);
  assert.deepEqual([colours[0], colours[7]], ["var(--wb-rank-0)", "var(--wb-rank-7)"]);
  assert.equal(replicaColour(-1), "var(--wb-ink-3)");
});

test("the topology of a closed cluster keeps its last picture, with nothing live, and says in its head that it is old", () => {
  const shown = show("topology", { ...recorded.topology, status: "stopped" });

  assert.doesNotMatch(textOf(shown.root), /live|idle/);
  assert.match(textOf(shown.root), /as it was last/);
  assert.equal(textOf(shown.root).split("stopped").length - 1, 1);
  const [worker] = recorded.topology.hosts[0]!.workers;
  assert.ok(textOf(shown.root).includes(memoryText(worker!.memory_bytes)));
  assert.equal(
    textOf(shown.root).match(/replica \d of MirroredStrategy · [ab], worker \d, cpu:\d/g)?.length,
    4,
  );
  shown.unmount();
  const lost = show("topology", { ...recorded.topologyLost, status: "stopped" });
  assert.match(textOf(lost.root), /lost/);
  lost.unmount();
});

test("an update replaces what was drawn, without new elements for what stays", async () => {
  const shown = show("topology", recorded.topology);
  const section = shown.root.querySelector(".wb");
  await shown.update(recorded.topologyLost);

  assert.equal(shown.root.querySelector(".wb"), section);
  const told = textOf(shown.root);
  assert.match(told, /✖ 1 lost: 1 *3 busy/);
  assert.match(
    told,
    /a, worker 1, cpu:1 · ✖ lost · was killed by SIGKILL · pid \d+;.* · step 274: running · pid \d+ · 109 MiB/,
  );
  shown.unmount();
});

test("what-if asks its owner, and is not offered where nobody answers", async () => {
  const silent = show("dataset_sharding", recorded.datasetMemory);
  assert.equal(silent.root.querySelector("fieldset"), null);
  silent.unmount();

  const asked: unknown[] = [];
  const shown = show("dataset_sharding", recorded.datasetMemory, { ask: (request) => asked.push(request) });
  const slider = shown.root.querySelector<HTMLInputElement>("input[type=range]")!;
  for (const value of ["17", "20"]) {
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }
  await settled(); // on its way a slider asks nothing
  await drawn();

  assert.deepEqual(asked, [
    { kind: "what_if", batch_size: 20, hosts: 1, replicas_per_host: 4, policy: "AUTO" },
  ]);
  shown.unmount();
});

test("what-if begins at the dataset's own batch size, however many rows the first step has", () => {
  const size = (model: Partial<DatasetSharding>) => {
    const shown = show("dataset_sharding", { ...recorded.datasetFiles, ...model }, { ask: () => undefined });
    const slider = shown.root.querySelector<HTMLInputElement>("input[type=range]")!;
    shown.unmount();
    return slider.value;
  };
  const half = recorded.datasetFiles.readers.slice(0, 2); // as when a host has no file: four rows in each step
  assert.equal(size({ readers: half }), "8");
  assert.equal(size({ batch_size: -1 }), "8"); // not described: what the fullest step has
});

test("a run that is picked is opened, two are compared, a damaged one cannot be picked", async () => {
  const asked: { kind: string; first?: unknown }[] = [];
  const shown = show("runs", recorded.runs, { ask: (request) => asked.push(request) });
  const rows = [...shown.root.querySelectorAll<HTMLElement>("tbody tr")];
  for (const name of ["damaged", "baseline", "Open baseline", "second", "Compare second with baseline"]) {
    (rows.find((row) => textOf(row).replace("✖", "").startsWith(name)) ?? button(shown.root, name)).click();
    await drawn();
  }

  assert.deepEqual(
    asked.map((request) => request.kind),
    ["open_run", "compare_runs"],
  );
  assert.match(String(asked[1]!.first), /baseline/);
  shown.unmount();
});

test("a recorded run has a page for each view that was recorded, and asks for other steps", async () => {
  const asked: unknown[] = [];
  const model = { ...recorded.replay, dataset_sharding: null };
  const shown = show("replay", model, { ask: (request) => asked.push(request) });
  const tabs = shown.root.querySelectorAll("[aria-label='What was recorded'] [role=tab]");
  assert.deepEqual([...tabs].map(textOf), [
    "Overview",
    "Collectives",
    "Topology",
    "Devices",
    "Values",
    "Array",
    "Input",
    "Data service",
    "Servers",
  ]);
  assert.match(textOf(shown.root), /devices: too large to be recorded/);

  button(shown.root, "Values").click();
  await drawn();
  assert.match(textOf(shown.root), /in sync/);

  const [first] = shown.root.querySelectorAll<HTMLInputElement>(".wb-form input");
  first!.value = "50";
  first!.dispatchEvent(new Event("input", { bubbles: true }));
  await drawn();
  shown.root.querySelector("form")!.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  assert.deepEqual(asked, [{ kind: "show_steps", first: 50, last: 119 }]);
  shown.unmount();
});

test("aborting the signal takes the view out of the page", () => {
  const ends = new AbortController();
  const shown = show("devices", recorded.devices, { signal: ends.signal });
  ends.abort();

  assert.equal(shown.root.childNodes.length, 0);
});

test("a histogram is drawn beside the figures, and said in words", () => {
  const shown = show("values", recorded.valuesElements);

  const said = [...shown.root.querySelectorAll(".wb-spark")].map((mark) => mark.getAttribute("aria-label"));
  assert.equal(said.length, 4);
  assert.match(said[1]!, /^histogram from -1.00 to 1.00, most from .* to .*$/);
  shown.unmount();
});

test("bins have their edges also where the range is wider than the largest number", () => {
  const { summary } = recorded.values.values[0]!.replicas[0]!;
  const edges = (min: number, max: number) =>
    binsOf({ ...(summary as Summary), histogram: [2, 5, 0, 1], min, max }).map(({ from, to }) => [from, to]);

  const [half, most] = [2 ** 1022, 2 ** 1023];
  assert.deepEqual(edges(-most, most), [
    [-most, -half],
    [-half, 0],
    [0, half],
    [half, most],
  ]);
  assert.deepEqual(edges(1, 1), Array<number[]>(4).fill([1, 1]));
});

test("a histogram by keys and as a table has the edges and the count of each bin", async () => {
  const [value] = recorded.valuesElements.values;
  const [replica] = value!.replicas;
  const summary = { ...(replica!.summary as Summary), histogram: [2, 5, 0, 1], min: -1, max: 3, shape: [20] };
  const one = { ...value!, name: "w", replicas: [{ ...replica!, summary }], agreement: null };
  const shown = show("values", { ...recorded.valuesElements, values: [one], elements: null });
  const chart = shown.root.querySelector("[role=application]")!;
  assert.equal(
    chart.getAttribute("aria-label"),
    "histogram of w, 4 bins from -1.00 to 3.00 · most from 0 to 1.00",
  );
  assert.match(textOf(shown.root), /4 bins, each 1\.00 wide.*8 of 20 elements counted/);
  for (const key of ["ArrowLeft", "ArrowLeft", "ArrowLeft"]) {
    press(key, chart);
    await drawn();
  }
  assert.equal(textOf(shown.root.querySelector("output")), "0 to 1.00 · 5 elements, 63 %");

  const part = chart.closest(".wb-part")!;
  part.querySelector<HTMLElement>("[aria-label=Table]")!.click();
  await drawn();
  const rows = [...part.querySelectorAll("tbody tr")].map((row) =>
    [...row.querySelectorAll("td")].map(textOf),
  );
  assert.deepEqual(rows, [
    ["-1.00", "0", "2", "25 %"],
    ["0", "1.00", "5", "63 %"],
    ["1.00", "2.00", "0", "0 %"],
    ["2.00", "3.00", "1", "13 %"],
  ]);

  button(shown.root, "Histogram").click();
  await drawn();
  assert.equal(shown.root.querySelector("[role=application]"), null);
  shown.unmount();
});

test("elements are offered only where somebody can fetch them", async () => {
  const silent = show("values", recorded.values);
  for (const name of ["Elements", "Look again"]) assert.throws(() => button(silent.root, name));
  silent.unmount();

  const asked: unknown[] = [];
  const shown = show("values", recorded.values, { ask: (request) => asked.push(request) });
  const part = shown.root.querySelectorAll(".wb-part .wb-part")[1]!;
  button(part.querySelector(".wb-actions")!, "Elements").click();
  button(shown.root, "Look again").click();
  await drawn();

  assert.deepEqual(asked, [
    {
      kind: "elements",
      value: 1,
      replica: 0,
      difference: false,
      axes: [0, 1],
      index: [0, 0],
      extent: [null, null],
    },
    { kind: "again" },
  ]);
  shown.unmount();
});

test("all that can be done with one value stands in one row, with when it was looked at below", async () => {
  const asked: unknown[] = [];
  const model = { ...recorded.values, values: recorded.values.values.slice(0, 1), first: null };
  const shown = show("values", model, { ask: (request) => asked.push(request) });
  const actions = shown.root.querySelector(".wb-actions")!;
  button(actions, "Look again").click();
  await drawn();
  assert.deepEqual(asked, [{ kind: "again" }]);
  assert.equal(textOf(shown.root).match(/looked at/g)?.length, 1);
  assert.equal(
    shown.root.querySelectorAll(".wb-head button").length,
    actions.querySelectorAll("button").length,
  );
  shown.unmount();
});

test("the steps of a dump are chosen with a slider, which says their numbers", async () => {
  const asked: unknown[] = [];
  const model = { ...recorded.values, steps: { steps: [3, 5, 9], shown: 1 } };
  const shown = show("values", model, { ask: (request) => asked.push(request) });
  const slider = shown.root.querySelector<HTMLInputElement>('input[type="range"]')!;

  assert.match(textOf(shown.root), /step 5 3 steps from step 3 to step 9/);
  assert.equal(slider.getAttribute("aria-valuetext"), "step 5");
  assert.equal(slider.max, "2");
  assert.doesNotMatch(textOf(shown.root), /Look again/);
  slider.value = "2";
  slider.dispatchEvent(new window.Event("change", { bubbles: true }));
  await drawn();

  assert.deepEqual(asked, [{ kind: "step", shown: 2 }]);
  shown.unmount();

  const silent = show("values", model);
  assert.equal(silent.root.querySelector('input[type="range"]'), null);
  silent.unmount();
});

test("the first NaN is named by tensor, replica, step and place, and one click goes there", async () => {
  const asked: { kind: string; index?: number[]; extent?: unknown; replica?: number }[] = [];
  const shown = show("values", recorded.valuesElements, { ask: (request) => asked.push(request) });
  const to = button(shown.root, "first NaN");
  assert.equal(textOf(to), `✖ ${recorded.valuesElements.first!.text}`);
  to.click();
  await settled();
  assert.deepEqual(
    asked.map(({ kind, replica, index, extent }) => ({ kind, replica, index, extent })),
    [{ kind: "elements", replica: 1, index: [1, 8, 88], extent: [64, 64] }],
  );
  assert.equal(shown.root.querySelectorAll("tr[aria-selected=true]").length, 1);
  to.click();
  await settled();
  assert.equal(shown.root.querySelectorAll("tr[aria-selected=true]").length, 1, "it stays selected");
  shown.root.querySelector<HTMLElement>("tr[aria-selected=true]")!.click();
  shown.unmount();
});

test("the keyboard reaches every cell of the heat map, and its line of text says what is there", async () => {
  const asked: { kind: string; index?: number[] }[] = [];
  const shown = show("values", recorded.valuesElements, { ask: (request) => asked.push(request) });
  const { elements } = recorded.valuesElements;
  const chart = shown.root.querySelector("[role=application]")!;
  const said = () => textOf(shown.root.querySelector("output"));
  for (const key of ["Home", "Home", "ArrowRight", "ArrowDown"]) {
    press(key, chart);
    await drawn();
  }
  const [down, right] = elements!.steps;
  assert.match(said(), new RegExp(`^\\[1, ${down}–${2 * down - 1}, ${right}–${2 * right - 1}\\]: mean `));
  press("Enter", chart);
  assert.deepEqual(asked.at(-1)!.index, [1, 0, 0]);
  shown.unmount();
});

test("axes, place and replica of the heat map are chosen by controls", async () => {
  const asked: { kind: string; axes?: unknown; index?: unknown; replica?: number; difference?: boolean }[] =
    [];
  const shown = show("values", recorded.valuesElements, { ask: (request) => asked.push(request) });
  const controls = shown.root.querySelector("fieldset")!;
  const change = async (control: HTMLInputElement | HTMLSelectElement, value: string) => {
    control.value = value;
    control.dispatchEvent(new Event("change", { bubbles: true }));
    await drawn();
    return asked.at(-1)!;
  };
  const [replica, down] = controls.querySelectorAll("select");

  assert.equal((await change(replica!, "3")).replica, 3);
  assert.deepEqual((await change(down!, "2")).axes, [2, 1]);
  assert.deepEqual((await change(down!, "0")).axes, [0, 2]);
  const slider = controls.querySelector<HTMLInputElement>("input[type=range]")!;
  assert.deepEqual((await change(slider, "0")).index, [0, 0, 0]);
  controls.querySelector<HTMLInputElement>("input[type=checkbox]")!.click();
  await drawn();
  assert.equal(asked.at(-1)!.difference, true);
  shown.unmount();
});

test("the heat map has a table twin in which NaN and infinity are words", async () => {
  const shown = show("values", recorded.valuesElements);
  button(shown.root, "Table").click();
  await drawn();

  const twin = shown.root.querySelectorAll("[role=grid]")[1]!;
  assert.equal(twin.querySelectorAll("th").length, 1 + recorded.valuesElements.elements!.cells[0]!.length);
  const texts = [...twin.querySelectorAll("td")].map(textOf);
  assert.ok(texts.includes("NaN"));
  assert.ok(texts.includes("∞"));
  shown.unmount();
});

test("colours of differences reach as far below none as above it", () => {
  const { elements } = recorded.valuesDifference;
  const cells: (number | string)[][] = [[-3, 1, "nan"]];

  assert.deepEqual(rangeOf({ ...elements!, cells }), { low: -3, high: 3 });
  assert.deepEqual(rangeOf({ ...elements!, cells, difference: false }), { low: -3, high: 1 });
  assert.equal(rangeOf({ ...elements!, cells: [["nan"]] }), null);
});

test("a position in C order is found on every axis", () => {
  assert.deepEqual(placeOf(2 * 20 + 3, [4, 5, 4]), [2, 0, 3]);
  assert.deepEqual(placeOf(0, []), []);
});

test("a sweep is drawn with band, fit, limit and the ghost of its baseline, all of them in words too", async () => {
  const [sweep] = recorded.collectives.sweeps;
  const points = sweep!.points.map((point) => ({ ...point, p50_us: 2 * point.p50_us }));
  const baseline = { name: "monday", n: 8, transport: "tcp", points };
  const compared = { ...sweep!, limit: 9, latency_us: 100, bandwidth: 0.05, baseline };
  const shown = show("sweep", { ...recorded.collectives, sweeps: [compared] });

  const paths = [...shown.root.querySelectorAll("svg path")];
  assert.equal(paths.filter((path) => path.getAttribute("class") === "wb-ghost").length, 1);
  assert.equal(paths.filter((path) => path.getAttribute("opacity") === "0.2").length, 1, "band");
  assert.equal(paths.filter((path) => path.getAttribute("stroke-dasharray")).length, 1, "fit");
  assert.match(textOf(shown.root), /baseline: monday, 8 replicas · tcp/);
  assert.match(textOf(shown.root), /fit: latency 100 µs \+ size \/ 50.0 MB\/s/);
  assert.match(textOf(shown.root), /measured limit 9.00 GB\/s/);

  press("Home", shown.root.querySelector("[role=application]")!);
  await drawn();
  assert.match(textOf(shown.root.querySelector("output")), /2.00 × as fast as monday$/);
  button(shown.root, "Table").click();
  await drawn();
  assert.equal(textOf(shown.root.querySelector("tbody td:last-child")), "2.00");
  shown.unmount();
});

test("what was lost or failed says what that means to those who ask", () => {
  const counters = {
    ...recorded.collectives.snapshot.counters,
    failed: 3,
    incomplete: 4,
    dropped: 5000,
    dropped_events: 6,
  };
  const snapshot = { ...recorded.collectives.snapshot, counters };
  for (const [view, names] of [
    ["collective_table", ["3 failed", "4 incomplete", "5,000 records dropped", "6 events dropped"]],
    ["log", ["6 older ones dropped"]],
  ] as const) {
    const shown = show(view, { ...recorded.collectives, snapshot });
    const facts = [...shown.root.querySelectorAll("details")];
    assert.deepEqual(
      facts.map((fact) => textOf(fact.querySelector("summary"))),
      names,
    );
    for (const fact of facts) {
      const help = fact.querySelector("summary")!.title;
      assert.ok(help.length > 40);
      assert.ok(textOf(fact).endsWith(help));
    }
    shown.unmount();
  }
});

test("an array of more blocks than can be told apart is drawn whole, and a block is found by where it is", async () => {
  const parts = Array.from({ length: 512 }, (_, replica) => ({
    ...{ replica, host: "a", device: "cpu:0", size_bytes: replica === 300 ? 4096 : 2048 },
    ...{ start: [8 * replica, 0], stop: [8 * replica + 8, 4096] },
  }));
  const array = { ...recorded.arrayUneven, shape: [4096, 4096], parts };
  const selection = new Selection();
  const shown = show("array_sharding", array, { selection });
  const paths = () =>
    [...shown.root.querySelectorAll(".wb-chart path")].map((path) => path.getAttribute("d") ?? "");
  assert.equal(paths().join("").split("M").length - 1, 512);
  assert.match(textOf(shown.root), /512 blocks/);
  assert.equal(paths()[2]!.split("M").length - 1, 1);
  assert.equal(shown.root.querySelectorAll(".wb-legend button").length, 1);
  assert.match(textOf(shown.root), /300.*4 KiB… and 511 replicas, most with 2 KiB/);
  assert.match(
    shown.root.querySelector(".wb-chart svg")!.getAttribute("aria-label")!,
    /and 496 more blocks$/,
  );

  selection.toggle(511);
  await settled();
  assert.match(paths().at(-1)!, /^M0.00 319.38H320.00V320.00/);
  shown.unmount();
});

test("the age of a value goes on while it is looked at, and its step stands beside it", async (context) => {
  const [value] = recorded.values.values;
  const { step } = value!.replicas[0]!;
  const replicas = value!.replicas.map((replica) => ({ ...replica, age_seconds: 0 }));
  const lookedAt = 1_700_000_000;
  const model = { ...recorded.values, values: [{ ...value!, replicas }], looked_at: lookedAt };
  context.mock.timers.enable({ apis: ["Date"], now: 1000 * (lookedAt + 60) });
  const shown = show("values", model);
  const cell = (title: string) => {
    const titles = [...shown.root.querySelectorAll("thead th")].map(textOf);
    return textOf(shown.root.querySelectorAll("tbody tr")[0]!.children[titles.indexOf(title)]!);
  };
  assert.equal(cell("age"), "60s");
  assert.equal(cell("step"), String(step));
  assert.match(textOf(shown.root), /looked at 60s ago/);
  context.mock.timers.setTime(1000 * (lookedAt + 7_300));
  for (let tries = 0; tries < 30 && cell("age") === "60s"; tries += 1) await settled();
  assert.equal(cell("age"), "2.0h");
  shown.unmount();
});

/** A value of one number per replica, at step 3 of a course. */
function numbers(...means: (number | null)[]) {
  const value = recorded.values.values[0]!;
  const replicas = means.map((mean, replica) => {
    const summary = {
      ...(value.replicas[0]!.summary as Summary),
      shape: [],
      mean,
      nan: mean === null ? 1 : 0,
    };
    return { ...value.replicas[0]!, replica, summary, step: 3 };
  });
  const lines = means.map((mean) => [1, 2, mean]);
  const course = {
    name: "loss",
    function: "f",
    steps: [1, 2, 3],
    mean: [1, 2, 3],
    replicas: lines,
    low: [],
    high: [],
  };
  return { ...value, name: "loss", hints: [], replicas, run_id: "run", group: "S/1", course };
}

/** What the dots of a chart say, one after the other. */
async function dotsOf(root: Element, key = "ArrowRight"): Promise<string[]> {
  const chart = root.querySelector("[role=application]")!;
  press("Home", chart);
  await settled();
  press("Home", chart);
  const found: string[] = [];
  for (;;) {
    await settled();
    const text = textOf(chart.nextElementSibling);
    if (found.includes(text)) return found;
    found.push(text);
    press(key, chart);
  }
}

test("a number per replica is a ring with the mean, and says which are not in it", async () => {
  const selection = new Selection();
  const model = { ...recorded.values, values: [numbers(0.5, 0.25, null, 0.75)], first: null };
  const shown = show("values", model, { selection });
  assert.match(
    textOf(shown.root),
    /step 3 · spread 0.500 · ✖ not finite: replica 2 · the mean is of the other 3/,
  );
  assert.deepEqual(await dotsOf(shown.root), [
    "replica 0: value 0.500",
    "replica 1: value 0.250",
    "replica 2: value not finite",
    "replica 3: value 0.750",
  ]);
  press("Enter", shown.root.querySelector("[role=application]")!);
  assert.equal(selection.now.replica, 3);
  button(shown.root, "Table").click();
  await drawn();
  assert.equal(shown.root.querySelectorAll("tbody tr").length, 4);
  shown.unmount();
});

test("numbers are those of the step of their course that is pointed at or pinned, anywhere on the page", async () => {
  const selection = new Selection();
  const value = numbers(5, 7);
  const model = { ...recorded.values, values: [value] };
  const shown = show("values", model, { selection });
  const said = () => textOf(shown.root.querySelector(".wb-beside > div > .wb-quiet"));
  assert.match(said(), /^step 3 · spread 2.00/);
  selection.brush({ of: "run|S/1", first: 2, last: 2 });
  await settled();
  assert.match(said(), /^step 2 · spread 0/);
  // The run goes on, and its course no longer has the step.
  const course = { ...value.course, steps: [3, 4, 5], replicas: [5, 7].map((at) => [at, at + 1, at + 2]) };
  const later = { ...value, course, hints: ["one more hint"] };
  await shown.update({ ...model, values: [later] });
  assert.match(said(), /^step 2 · spread 0/);
  assert.match(textOf(shown.root), /one more hint/);
  selection.brush({ of: "run|S/1", first: 4, last: 4 });
  await settled();
  assert.deepEqual(await dotsOf(shown.root), ["replica 0: value 6.00", "replica 1: value 8.00"]);
  button(shown.root, "step 4 ×").click();
  await settled();
  assert.equal(selection.now.range, null);
  assert.match(said(), /^step 3/);
  await shown.update(model);
  selection.point({ of: "run|S/1", number: 1 });
  await settled();
  assert.match(said(), /^step 1/);
  shown.unmount();
});

test("copies that differ: a sentence, the step to go to, how far each is, and the difference by step", async () => {
  const selection = new Selection();
  const value = recorded.values.values[1]!;
  const agreement = {
    ...value.agreement!,
    in_sync: false,
    max_abs_difference: 0.5,
    first_replica: 2,
    since: "at step 42",
    sentence: "Replica 2 differs from the other 3 since step 42, in rows 8 and 9 only",
    evidence: "the largest difference is 0.500",
    step: 42,
    differences: [0, 0, 0.5, 0].map((largest, replica) => ({
      replica,
      largest,
      elements: largest ? 114 : 0,
    })),
    course: {
      name: "largest difference",
      function: "",
      steps: [40, 42],
      mean: [0, 0.5],
      replicas: [],
      low: [],
      high: [],
    },
  };
  const differing = { ...value, agreement, run_id: "run", group: "S/1" };
  const shown = show("values", { ...recorded.values, values: [differing] }, { selection });
  assert.match(
    textOf(shown.root.querySelector(".wb-verdict")),
    /^Replica 2 differs .*The largest difference/,
  );
  const row = [...shown.root.querySelectorAll("tbody tr")][2]!;
  assert.match(textOf(row), /0.500114/);
  button(shown.root, "Show step 42 →").click();
  await settled();
  assert.deepEqual(selection.now.range, { of: "run|S/1", first: 42, last: 42 });
  const chart = shown.root.querySelector("[aria-label='largest difference in 2 steps']")!;
  press("End", chart);
  await settled();
  assert.match(textOf(chart.nextElementSibling), /^step 42 pinned · step 42: largest 0.500$/);
  button(shown.root, "step 42 ×").click();
  await settled();
  assert.equal(selection.now.range, null);
  shown.unmount();
});

test("of more than 32 replicas each has a dot for each figure, and those that are far come first in the table", async () => {
  const value = recorded.values.values[0]!;
  const summary = value.replicas[0]!.summary as Summary;
  const replicas = Array.from({ length: 64 }, (_, replica) => ({
    ...value.replicas[0]!,
    replica,
    summary: {
      ...summary,
      mean: replica === 9 ? null : replica,
      l2: 2 * replica,
      nan: replica === 9 ? 1 : 0,
    },
  }));
  const quantiles = ["mean", "L2"].map((figure) => ({
    figure,
    low: 1,
    p10: 2,
    median: 3,
    p90: 4,
    high: 5.5,
  }));
  const rest = "… 62 more replicas, finite and close to each other";
  const spread = { quantiles, outliers: [7, 9], outlying: 2, not_finite: 1, rest };
  const shown = show("values", { ...recorded.values, values: [{ ...value, replicas, spread }] });
  assert.equal(shown.root.querySelector("table"), null);
  assert.match(
    textOf(shown.root),
    /mean 3.00, of most 2.00 to 4.00 · norm 3.00, of most 2.00 to 4.00 · ✖ not finite: replica 9 · 62 more/,
  );
  const said = await dotsOf(shown.root);
  assert.equal(said.length, 64);
  assert.deepEqual([said[7], said[9]], ["replica 7: mean 7.00", "replica 9: mean not finite"]);
  assert.equal((await dotsOf(shown.root, "ArrowDown"))[1], "replica 0: norm 0");
  button(shown.root, "Table").click();
  await drawn();
  const rows = [...shown.root.querySelectorAll("tbody tr")];
  assert.deepEqual(
    rows.slice(0, 3).map((row) => textOf(row.firstElementChild)),
    ["7", "9", "0"],
  );
  shown.unmount();
});

test("input marks the bottleneck, the queue, what AUTOTUNE chose and who starves", async () => {
  const shown = show("input", recorded.inputStarving);
  const cards = [...shown.root.querySelectorAll(".wb-stage[data-bottleneck]")].map(
    (card) => card.textContent,
  );

  assert.equal(cards.length, 2); // one per host
  assert.match(cards[0]!, /^map\(augment\).*2 processes \(AUTOTUNE\).*12 failures.*bottleneck$/);
  assert.match(cards[0]!, /4,712\/s, now 3,927\/s/);
  assert.match(textOf(shown.root), /queue 3\.70 of 8 \(AUTOTUNE\), 3 MiB/);
  assert.match(textOf(shown.root), /Replica 3 waits 47 % of the time for input/);
  assert.deepEqual(await dotsOf(shown.root), [
    "replica 0: waited % 8.80",
    "replica 1: waited % 7.20",
    "replica 2: waited % 44.8",
    "replica 3: waited % 47.2",
  ]);
  button(shown.root, "Table").click();
  await drawn();
  assert.match(textOf(shown.root), /2▲ starving 45 %3▲ starving 47 %$/);
  shown.unmount();
});

test("equal pipelines of many hosts are one with ranges, which opens to a dot for each host", async () => {
  const { pipelines } = recorded.inputStarving;
  const odd = { ...pipelines[1]!, name: "host 7", why: "replica 7 starves" };
  const range = { elements_per_second: [4, 9], busy_share: [0.5, 0.75], queue_fill: [1, 3] } as const;
  const group = {
    ...pipelines[0]!,
    name: "3 other hosts",
    hosts: ["a", "b", "c"],
    rates: [10, 20, 40],
    busy_percent: [50, 60, 75],
    ranges: pipelines[0]!.stages.map(() => ({
      elements_per_second: [...range.elements_per_second] as [number, number],
      busy_share: [...range.busy_share] as [number, number],
      queue_fill: [...range.queue_fill] as [number, number],
    })),
  };
  const shown = show("input", {
    ...recorded.inputStarving,
    pipelines: [odd, group],
    replicas: [],
    replica_percent: [],
  });
  const [first, second] = [...shown.root.querySelectorAll(".wb-pipeline")];
  assert.match(textOf(first!.querySelector("h4")), /^host 7 ▲replica 7 starves/);
  assert.match(textOf(second!.querySelector("h4")), /^3 other hosts median 73.0\/s/);
  assert.match(textOf(second!), /\(4.00 to 9.00\).*busy \(50 to 75\)/);
  assert.match(textOf(shown.root), /4 pipelines/);
  const open = button(shown.root, "Host by host");
  assert.equal(open.getAttribute("aria-expanded"), "false");
  open.click();
  await settled();
  assert.deepEqual(await dotsOf(second!), ["a: elements/s 10.0", "b: elements/s 20.0", "c: elements/s 40.0"]);
  assert.deepEqual((await dotsOf(second!, "ArrowDown"))[1], "a: busy % 50.0");
  open.click();
  await settled();
  assert.equal(second!.querySelector("[role=application]"), null);
  button(shown.root, "Table").click();
  await drawn();
  assert.match(textOf(shown.root), /\(4.00 to 9.00\)/);
  shown.unmount();
});

test("input draws what a stage reads before the stage", () => {
  const shown = show("input", recorded.inputMeasured);
  const flows = [...shown.root.querySelectorAll(".wb-inputs > .wb-flow")].map((flow) =>
    [...flow.querySelectorAll("code")].map((code) => code.textContent),
  );

  assert.deepEqual(flows, [
    ["text lines", "map(tokens)"],
    ["range", "map(<lambda>)"],
  ]);
  shown.unmount();
});

test("a replica that is picked out in the view of input is picked out everywhere", async () => {
  const selection = new Selection();
  const shown = show("input", recorded.inputStarving, { selection });
  const said = await dotsOf(shown.root);
  press("Enter", shown.root.querySelector("[role=application]")!);
  assert.match(said.at(-1)!, new RegExp(`^replica ${selection.now.replica}: waited`));
  shown.unmount();
});

test("a data service says how its splits stand, who reads in rounds, and what was taken over", () => {
  const shown = show("data_service", recorded.serviceLive);
  const jobs = [...shown.root.querySelectorAll(".wb-job")];

  assert.deepEqual(
    jobs.map((job) => job.getAttribute("aria-label")),
    ["job tuning", "job training, pass 2", "job training"],
  );
  assert.match(jobs[1]!.textContent, /3,410\/s.*128 splits: 90 read, 6 at workers, 32 to come/);
  assert.match(jobs[1]!.textContent, /1 lane taken over from lost workers/);
  assert.match(jobs[2]!.textContent, /complete/);
  assert.equal(shown.root.querySelectorAll(".wb-workers li").length, 2);
  shown.unmount();
});

test("a data service that cannot go on says what is missing and what helps", () => {
  const shown = show("data_service", recorded.serviceWaiting);

  assert.match(
    textOf(shown.root),
    /Job 'aligned' waits for consumers 1, 2 of 3\.\s*Its consumers read in rounds/,
  );
  assert.match(textOf(shown.root), /1 of 3 consumers, in rounds/);
  shown.unmount();
});

test("servers say what they hold, how stale updates are, and what each worker runs and for how long", () => {
  const shown = show("servers", recorded.serversLive);

  assert.match(textOf(shown.root), /1,214 functions under way, 494 functions\/s/);
  const held = [...shown.root.querySelectorAll("[aria-label='ps:1'] .wb-held li")].map(
    (row) => row.textContent,
  );
  assert.equal(held.length, 3);
  assert.match(held[0]!, /table\/part_1.*500,000 rows × 64 f32.*122 MiB \+ 244 MiB slots.*48,209 updates/);
  const server = shown.root.querySelector("[aria-label='ps:1']")!.textContent;
  assert.match(server, /staleness 0, typically 1.*17 left out as too stale.*4 came again.*restarted 1×/);
  const workers = [...shown.root.querySelectorAll(".wb-worker-rows li")].map((row) => row.textContent);
  assert.match(workers[1]!, /worker:1.*167\/s.*evaluate, for 12\.4 s.*8,090 functions/);
  assert.match(workers[2]!, /train_step and 5 more/);
  assert.match(
    shown.root.querySelector(".wb-queue")!.textContent,
    /1,204waiting2for results8running24,096done/,
  );
  shown.unmount();
});

test("servers show which of them is lost and what comes of it; figures that nobody has seen are no zeros", () => {
  const shown = show("servers", recorded.serversLost);

  assert.match(textOf(shown.root), /ps:1 is lost: worker 4 on node-1 was killed by SIGKILL/);
  assert.match(textOf(shown.root), /The next function that needs it has it started again/);
  assert.equal(shown.root.querySelectorAll(".wb-job[data-status='lost']").length, 1);
  shown.unmount();

  const [server] = recorded.serversLive.servers;
  const fresh = { ...server!, newest_staleness: null, typical_staleness: null, variables: [] };
  const before = show("servers", { ...recorded.serversLive, servers: [fresh], queue: null, workers: [] });
  assert.match(textOf(before.root), /staleness –.*holds no variable/);
  before.unmount();
});

test("of many workers each has a dot, and those are listed that are lost or far from the others", async () => {
  const [worker] = recorded.serversLive.workers;
  const workers = Array.from({ length: 512 }, (_, i) => ({
    ...worker!,
    ...{ name: `worker:${i}`, functions_per_second: i === 7 ? 12 : 160 + (i % 5) },
    ...(i === 300 && { state: "lost", detail: "killed", functions_per_second: 0 }),
  }));
  const [server] = recorded.serversLive.servers;
  const servers = Array.from({ length: 40 }, (_, i) => ({
    ...{ ...server!, name: `ps:${i}`, updates_per_second: i === 9 ? 3 : 1500 + (i % 7) },
  }));
  written.length = 0;
  const shown = show("servers", { ...recorded.serversLive, workers, servers });
  await settled();
  const listed = [...shown.root.querySelectorAll(".wb-worker-rows code, .wb-server-cards > div")];
  assert.deepEqual(
    listed.map((one) => one.getAttribute("aria-label") ?? one.textContent),
    ["worker:300", "worker:7", "ps:9"],
  );
  assert.ok(written.includes("worker:7: 12.0 ↓") && written.includes("ps:9: 3.00 ↓"));
  assert.match(textOf(shown.root), /510 more workers: the table has them.*39 more servers/s);
  shown.unmount();
});

test("of many workers of a data service each has a dot, and the slow one is listed", async () => {
  const [worker] = recorded.serviceLive.workers;
  const workers = Array.from({ length: 100 }, (_, i) => ({
    ...{ ...worker!, address: `host-${i}:1`, elements_per_second: i === 42 ? 0.1 : 0.9 },
  }));
  const shown = show("data_service", { ...recorded.serviceLive, workers });
  await settled();
  const listed = [...shown.root.querySelectorAll(".wb-workers code")];
  assert.deepEqual(
    listed.map((one) => one.textContent),
    ["host-42:1"],
  );
  assert.match(textOf(shown.root), /99 more workers/);
  shown.unmount();
});

test("a lost one of many devices has a line", async () => {
  const model = manyDevices({});
  model.devices[500] = { ...model.devices[500]!, status: "lost" };
  const { charts } = await namedDevices(model);
  assert.deepEqual(charts.slice(1), ["Use of devices: 1 in 3 samples"]);
});

test("a topology says its status once, and what has another one beside it", () => {
  const said = (model: typeof recorded.topology) => {
    const shown = show("topology", model);
    const words = [...shown.root.querySelectorAll(".wb-status")].map((one) => textOf(one));
    shown.unmount();
    return words;
  };
  assert.deepEqual(said(recorded.topology), ["● live"]);
  assert.deepEqual(said(recorded.topologyLost), ["✖ lost"]); // of the cluster; below it stands which worker
  const strategies = recorded.topology.strategies.map((one) => ({ ...one, status: "stale" }));
  assert.deepEqual(said({ ...recorded.topology, strategies }), ["● live", "◐ stale"]);
});

test("the focus stays in a view whose button goes once there is something to draw, and on nothing foreign", async () => {
  const shown = show("sweep", { ...recorded.collectives, sweeps: [] });
  shown.root.querySelector<HTMLElement>("button")!.focus();
  await shown.update(recorded.collectives);

  assert.ok(shown.root.querySelector(".wb-chart svg"));
  assert.equal(document.activeElement, shown.root.querySelector(".wb"));
  shown.unmount();
});

test("the focus stays in its place of a table whose rows newer ones replace, and goes with the table to the view", async () => {
  const of = (name: string) => ({
    ...recorded.collectives,
    snapshot: {
      ...recorded.collectives.snapshot,
      events: ["a", "b", "c"].map((key) => ({
        ...recorded.lost.snapshot.events[0]!,
        ...{ key: name + key, message: name + key },
      })),
    },
  });
  const shown = show("log", of("old "));
  const cells = () => [...shown.root.querySelectorAll<HTMLElement>("tbody tr:nth-child(2) td")];
  const place = cells().findIndex((cell) => textOf(cell) === "old b");
  cells()[place]!.focus();
  await shown.update(of("new "));

  assert.equal(textOf(document.activeElement), "new b");
  assert.equal(document.activeElement, cells()[place]);
  await shown.update({ ...of(""), snapshot: { ...of("").snapshot, events: [] } });
  assert.equal(document.activeElement, shown.root.querySelector(".wb"));
  shown.unmount();
});
