// A view of a widget whose kernel goes while it is shown.
import assert from "node:assert/strict";
import { test } from "node:test";
import { button, drawn, settled, textOf } from "./page";
import * as recorded from "./recorded";
import { sayFieldTerms, wording } from "../src/parts/terms";

const { attach, followTerms } = await import("../src/attach");

/** A widget's model as anywidget gives it. */
class FakeModel {
  gone = false;
  sent: unknown[] = [];
  handlers = new Map<string, unknown>();
  #values = new Map<string, unknown>([
    ["view", "values"],
    ["model", recorded.values],
  ]);
  get(name: string): unknown {
    return this.#values.get(name);
  }
  set(name: string, value: unknown): void {
    this.#values.set(name, value);
  }
  send(content: unknown): void {
    if (this.gone) throw new Error("Cannot send"); // as the comm of JupyterLab does
    this.sent.push(content);
  }
  on(event: string, handler: unknown): void {
    this.handlers.set(event, handler);
  }
  off(event: string): void {
    this.handlers.delete(event);
  }
}

function attached(): { model: FakeModel; place: HTMLElement; detach: () => void } {
  const model = new FakeModel();
  const place = document.createElement("div");
  document.body.append(place);
  return { model, place, detach: attach(model, place) };
}

test("a view whose kernel has gone leaves the page all the same, and says nothing to nobody", () => {
  const { model, place, detach } = attached();
  assert.deepEqual([...model.handlers.keys()].sort(), ["change:model", "msg:custom"]);
  model.gone = true;

  detach();
  assert.equal(place.childElementCount, 0);
  assert.equal(model.handlers.size, 0);
  document.dispatchEvent(new Event("visibilitychange")); // as at a reload of the page
});

test("what is asked of a kernel that has gone is answered with what to do", async () => {
  const { model, place, detach } = attached();
  button(place, "Look again").click();
  assert.deepEqual(model.sent.at(-1), { kind: "again" });

  model.gone = true;
  button(place, "Look again").click();
  await settled();
  await drawn();
  assert.match(textOf(place.querySelector("[role=alert]")), /restarted or has ended: run the cell again/);
  detach();
});

test("views say the field's terms when a kernel says so, and a further view of it is no news", () => {
  const model = new FakeModel();
  const shown = () => wording("bandwidth", "busbw");
  followTerms(model);
  assert.equal(shown(), "bandwidth"); // it has said nothing

  const changed = model.handlers.get("change:field_terms") as () => void;
  model.set("field_terms", true);
  changed();
  assert.equal(shown(), "busbw");
  sayFieldTerms(false); // as a setting that changes later
  followTerms(model);
  assert.equal(shown(), "bandwidth");

  const other = new FakeModel();
  other.set("field_terms", true);
  followTerms(other);
  assert.equal(shown(), "busbw"); // it had said so before its first view was drawn
  sayFieldTerms(false);
});
