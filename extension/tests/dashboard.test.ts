// The components of the dashboard: what they tell the server, and what they make of what it sends.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PanelComponent } from "../src/dashboard/bokeh";
import type { ShellState } from "../src/dashboard/shell";
import { wording } from "../src/parts/terms";
import { button, settled, textOf } from "./page";
import * as recorded from "./recorded";

const views = await import("../src/widget");
const { pane } = await import("../src/dashboard/pane");
const { shell } = await import("../src/dashboard/shell");

const HOSTILE = `<img src=x onerror="globalThis.hit=1">`;

class FakeComponent implements PanelComponent {
  sent: { kind: string }[] = [];
  #handlers = new Map<string, (content: never) => void>();
  send_msg(content: unknown): void {
    this.sent.push(content as { kind: string });
  }
  on(event: string, handler: (content: never) => void): void {
    this.#handlers.set(event, handler);
  }
  say(message: unknown): void {
    this.#handlers.get("msg:custom")?.(JSON.stringify(message) as never);
  }
  remove(): void {
    this.#handlers.get("remove")?.(undefined as never);
  }
  kinds(): string[] {
    return this.sent.splice(0).map((message) => message.kind);
  }
}

function place(): HTMLElement {
  const element = document.createElement("div");
  document.body.append(element);
  return element;
}

const STATE: ShellState = {
  title: `job ${HOSTILE}`,
  status: "live",
  note: "",
  clusters: [],
  cluster: "",
  choose: false,
  tabs: ["Overview", "Log"],
  tab: "Overview",
};

test("a pane asks for its model, says each time that it has taken one, and draws it", async () => {
  const component = new FakeComponent();
  const root = place();
  pane(component, root, { view: "topology", answers: false, opens: false }, views);
  assert.equal(component.kinds().at(-1), "resync");

  component.say({ kind: "note", text: HOSTILE });
  assert.equal(textOf(root), HOSTILE);
  component.say({ kind: "model", model: recorded.topology });
  assert.ok(component.kinds().filter((kind) => kind === "taken").length === 2);
  assert.match(textOf(root), /Topology/);
  assert.doesNotMatch(textOf(root), /onerror/);

  component.say({ kind: "model", model: { ...recorded.topology, status: "stale" } });
  await settled();
  assert.match(textOf(root), /stale/);
  component.remove();
  assert.equal(component.sent.at(-1)?.kind, "visible");
  assert.equal(textOf(root), "");
});

test("a dashboard, which has no notebook, offers to insert nothing", () => {
  const component = new FakeComponent();
  const root = place();
  pane(component, root, { view: "sweep", answers: false, opens: false }, views);
  component.say({ kind: "model", model: { ...recorded.collectives, sweeps: [] } });
  assert.match(textOf(root), /wb\.collectives\.sweep\(strategy\)Copy it into a cell of a notebook\./);
  assert.equal(root.querySelector(".wb-nothing button"), null);
  component.remove();
});

test("what is empty has the name of what comes, and the line that brings it apart", () => {
  const component = new FakeComponent();
  const root = place();
  const what = { view: "values", answers: false, opens: false, title: "Values", line: "wb.inspect(value)" };
  pane(component, root, what, views);
  component.say({
    kind: "note",
    text: "what each replica holds: wb.inspect(value) in the job shows it here",
  });
  assert.equal(root.querySelector("strong")?.textContent, "Values");
  assert.equal(root.querySelector("code")?.textContent, "wb.inspect(value)");
  assert.equal(textOf(root), "Valueswhat each replica holds: wb.inspect(value) in the job shows it here");
  component.say({ kind: "note", text: "the job has ended" });
  assert.equal(textOf(root), "the job has ended");
});

test("a view in a page leaves its status to the bar of the page, and keeps those of its parts", async () => {
  const component = new FakeComponent();
  const root = place();
  pane(component, root, { view: "devices", answers: false, opens: false }, views);
  component.say({ kind: "model", model: recorded.devices });
  await settled();
  const hidden = (selector: string) =>
    [...root.querySelectorAll(selector)].map((one) => getComputedStyle(one).display === "none");
  assert.deepEqual(hidden(".wb-state"), [true]);
  assert.ok(hidden("td .wb-status").length > 0 && !hidden("td .wb-status").includes(true));
});

test("a pane that lacks a change asks for all of it", () => {
  const component = new FakeComponent();
  pane(component, place(), { view: "log", answers: false, opens: false }, views);
  component.say({ kind: "model", model: recorded.collectives });
  component.kinds();
  const since = recorded.collectives.snapshot.version + 1;
  component.say({
    kind: "collectives",
    change: { since, version: since + 1 },
    status: "live",
    silent: [],
    sweeps: [],
  });
  assert.deepEqual(component.kinds(), ["taken", "resync"]);
});

test("a pane says that its run is being read, and what is wrong with it", () => {
  const component = new FakeComponent();
  const root = place();
  pane(component, root, { view: "replay", answers: true, opens: false }, views);
  assert.equal(textOf(root), "loading …");
  component.say({ kind: "problem", text: `damaged ${HOSTILE}` });
  assert.equal(textOf(root), `damaged ${HOSTILE}`);
  assert.equal(root.querySelector("img"), null);
  component.say({ kind: "model", model: recorded.replay });
  assert.doesNotMatch(textOf(root), /damaged/);
});

test("where nobody answers, nothing is offered to ask", () => {
  const offered = [true, false].map((answers) => {
    const root = place();
    const component = new FakeComponent();
    pane(component, root, { view: "replay", answers, opens: false }, views);
    component.say({ kind: "model", model: recorded.replay });
    return [...root.querySelectorAll("button")].some((one) => one.textContent === "Show");
  });
  assert.deepEqual(offered, [true, false]);
});

test("the bar shows texts as texts, and tells which tab and which cluster were picked", () => {
  const component = new FakeComponent();
  const root = place();
  shell(component, root);
  assert.equal(component.kinds().at(-1), "ready");
  component.say(STATE);
  assert.match(textOf(root), /onerror/);
  assert.equal(root.querySelector("img"), null);
  button(root, "Log").click();
  assert.deepEqual(component.sent.splice(0), [{ kind: "tab", name: "Log" }]);

  const clusters = ["a", "b"].map((id) => ({ id, name: HOSTILE, pid: 1, status: "live", text: "2 devices" }));
  component.say({ ...STATE, clusters, choose: true });
  root.querySelectorAll<HTMLElement>("li button")[1]?.click();
  assert.deepEqual(component.sent, [{ kind: "cluster", id: "b" }]);
});

test("the bar says that the server does not answer any more, and calls nothing live then", () => {
  let lose: () => void = () => assert.fail("nobody listens");
  const documents = [
    { on_event: (name: string, lost: () => void) => name === "connection_lost" && (lose = lost) },
  ];
  Object.assign(globalThis, { Bokeh: { documents } });
  const component = new FakeComponent();
  const root = place();
  shell(component, root);
  lose();
  assert.equal(root.querySelector("h1"), null);
  component.say(STATE);
  assert.match(textOf(root), /live/);
  lose();
  assert.match(textOf(root), /does not answer any more/);
  assert.match(textOf(root), /stale/);
  assert.equal(root.querySelector(".wb-status")?.textContent.includes("live"), false);
  Object.assign(globalThis, { Bokeh: undefined });
});

test("the theme goes round, the words change, and views notice", async () => {
  const component = new FakeComponent();
  const root = place();
  shell(component, root);
  component.say(STATE);
  const seen = [0, 1, 2].map(() => {
    button(root, "Theme").click();
    return document.documentElement.dataset["theme"];
  });
  assert.deepEqual(seen, ["light", "dark", "auto"]);
  const terms = root.querySelector<HTMLInputElement>("input[type=checkbox]")!;
  assert.equal(textOf(terms.parentElement), "The field's terms");
  terms.click();
  await settled();
  assert.deepEqual([terms.checked, wording("bandwidth", "busbw")], [true, "busbw"]);
  const later = place(); // as on a page that the browser opens later
  shell(new FakeComponent(), later);
  assert.equal(wording("bandwidth", "busbw"), "busbw");
  terms.click();
  await settled();
  assert.deepEqual([terms.checked, wording("bandwidth", "busbw")], [false, "bandwidth"]);
});
