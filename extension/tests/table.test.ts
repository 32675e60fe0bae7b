// Which columns a table has: a condition before one leaves it out.
import assert from "node:assert/strict";
import { test } from "node:test";
import { button, drawn, show, textOf } from "./page";
import * as recorded from "./recorded";

test("the table of a sweep has a column for the baseline only where there is one", async () => {
  const [sweep] = recorded.collectives.sweeps;
  const baseline = { name: "monday", n: 2, transport: "tcp", points: sweep!.points };
  const headings = async (one: typeof sweep) => {
    const shown = show("sweep", { ...recorded.collectives, sweeps: [one!] });
    button(shown.root, "Table").click();
    await drawn();
    const found = [...shown.root.querySelectorAll("thead th")].map(textOf);
    shown.unmount();
    return found;
  };

  const plain = await headings(sweep);
  assert.equal(plain.at(-1), "fit");
  assert.deepEqual(await headings({ ...sweep!, baseline }), [...plain, "× baseline"]);
});
