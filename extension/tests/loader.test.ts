// What each widget brings along: where it has the code from that makes files, and what is said where no kernel sends that.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import loader from "../src/loader";
import { button, settled, show, textOf } from "./page";
import * as recorded from "./recorded";

type Code = (name: string) => Promise<string>;
type Handler = (content: { kind: string; text: string }) => void;

/** The views, as if they were loaded already: what a widget tells them is all that is looked at. */
const told: Code[] = [];
const attach = (_: unknown, __: unknown, code: Code) => {
  told.push(code);
  return () => undefined;
};
const place = (globalThis as Record<symbol, unknown>)[Symbol.for("workbench.views")];
const followed: unknown[] = [];
const followTerms = (code: unknown) => void followed.push(code);
(place as Map<string, unknown>).set("d1", Promise.resolve({ attach, followTerms }));

/** The widget of a kernel that holds the views' code. */
class FakeCode {
  handlers: Handler[] = [];
  sent: unknown[] = [];
  comm_live?: boolean;
  get = () => "the views";
  on = (_: string, handler: Handler) => this.handlers.push(handler);
  off = (_: string, handler: Handler) => {
    this.handlers = this.handlers.filter((one) => one !== handler);
  };
  send(content: unknown): void {
    this.sent.push(content);
  }
  answer(text: string): void {
    for (const handler of [...this.handlers]) {
      handler({ kind: "other", text: "" });
      handler({ kind: "exports", text });
    }
  }
}

/** How a widget gets the text of a module, whose code is held by another. */
async function codeOf(code: FakeCode): Promise<Code> {
  const model = {
    get: (name: string) => (name === "digest" ? "d1" : "IPY_MODEL_c0de"),
    send: () => undefined,
    widget_manager: { get_model: () => Promise.resolve(code) },
  };
  await loader.render({ model, el: document.createElement("div") } as never);
  return told.at(-1)!;
}

test("a kernel is asked for what makes files, and nothing listens after its answer", async () => {
  const code = new FakeCode();
  const get = await codeOf(code);
  assert.equal(followed.at(-1), code); // whose kernel may say which words views use
  assert.equal(await get("widget"), "the views");
  assert.deepEqual(code.sent, []);

  const text = get("exports");
  assert.deepEqual(code.sent, [{ kind: "exports" }]);
  code.answer("makes files");
  assert.equal(await text, "makes files");
  assert.deepEqual(code.handlers, []);
});

test("where no kernel has the views, that is said at once, and nothing waits or listens", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const saved = new FakeCode();
  saved.comm_live = false;
  await assert.rejects((await codeOf(saved))("exports"), /a page that was saved makes no files/);
  assert.deepEqual([saved.sent, saved.handlers], [[], []]);

  const ended = new FakeCode();
  ended.send = () => {
    throw new Error("Cannot send");
  };
  const get = await codeOf(ended);
  const failed = assert.rejects(get("exports"), /run the cell again/);
  assert.deepEqual(ended.handlers, []);
  await failed;
  mock.timers.reset();
});

test("a kernel that does not answer in half a minute is busy or has ended", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const code = new FakeCode();
  const get = await codeOf(code);
  const failed = assert.rejects(get("exports"), /does not answer. If a cell runs, try again after it/);
  mock.timers.tick(29_999);
  assert.equal(code.handlers.length, 1);
  mock.timers.tick(1);
  assert.deepEqual(code.handlers, []);
  await failed;
  mock.timers.reset();
});

test("of two kernels with the same views each is asked by its own", async () => {
  const [one, other] = [new FakeCode(), new FakeCode()];
  const [first, second] = [await codeOf(one), await codeOf(other)];
  void first("exports");
  assert.deepEqual([one.sent.length, other.sent.length], [1, 0]);
  void second("exports");
  assert.deepEqual([one.sent.length, other.sent.length], [1, 1]);
  one.answer("");
  other.answer("");
});

test("a menu asks where its view has the code from, whatever view was drawn last", async () => {
  const asked: string[] = [];
  const from = (name: string) => ({
    code: () => {
      asked.push(name);
      return Promise.reject(new Error(`${name} has ended`));
    },
  });
  const shown = show("devices", recorded.devices, from("one"));
  const other = show("devices", recorded.devices, from("other"));
  button(shown.root, "Export").click();
  await settled();
  button(shown.root, "Table (CSV)").click();
  await settled();
  assert.deepEqual(asked, ["one"]);
  assert.match(
    textOf(shown.root.querySelector(".wb-unsaved")),
    /^devices.csv is not saved: the code that makes files did not come: one has ended$/,
  );
  shown.unmount();
  other.unmount();
});
