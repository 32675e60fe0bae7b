// Which columns a table has: a condition before one leaves it out; and which row its cursor is at.
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

test("the cursor of a table stays with its row when rows are sorted, come and go", async () => {
  const { snapshot } = recorded.collectives;
  const row = (key: string, size_bytes: number) => ({ ...snapshot.table[0]!, key, size_bytes });
  const [small, large, huge] = [row("small", 8), row("large", 4096), row("huge", 2 ** 20)];
  const of = (table: (typeof small)[]) => ({ ...recorded.collectives, snapshot: { ...snapshot, table } });
  const { root, update, unmount } = show("collective_table", of([small, large]));
  const at = () => textOf(root.querySelector("tbody [tabindex='0']")!.closest("tr")!.children[1]!);

  root.querySelectorAll<HTMLElement>("tbody tr")[1]!.querySelector<HTMLElement>("td")!.focus();
  await drawn();
  assert.match(at(), /4.* KiB/);
  await update(of([huge, small, large]));
  assert.match(at(), /4.* KiB/);
  root.querySelectorAll<HTMLElement>("thead th")[1]!.click(); // by size
  await drawn();
  assert.match(at(), /4.* KiB/);
  await update(of([huge, small])); // it goes: keys go on from what is in its place
  assert.ok(root.querySelector("tbody [tabindex='0']"));
  unmount();
});
