// The row above a view: what has no room in it waits behind a "…".
import assert from "node:assert/strict";
import { test } from "node:test";
import { h, render } from "preact";
import { drawn, textOf } from "./page";
import { Head } from "../src/parts/head";
import { IconButton } from "../src/parts/icons";

/** happy-dom lays nothing out: each button is 40 px wide here, and the row 200 px. */
function laidOut(): void {
  const prototype = HTMLElement.prototype;
  const width = (get: (this: HTMLElement) => number) => ({ configurable: true, get });
  Object.defineProperty(
    prototype,
    "offsetWidth",
    width(function () {
      return this.closest(".wb-actions") ? 40 : 0;
    }),
  );
  Object.defineProperty(
    prototype,
    "clientWidth",
    width(() => 200),
  );
}

test("buttons that come later fold where there is no room for them, though they have no text", async () => {
  laidOut();
  const place = document.createElement("div");
  document.body.append(place);
  const draw = async (count: number) => {
    const buttons = Array.from({ length: count }, (_, index) =>
      h(IconButton, { name: "again", label: `button ${index}`, onClick: () => undefined }),
    );
    render(h(Head, { title: "" }, buttons), place);
    await drawn();
    return {
      hidden: place.querySelectorAll(".wb-actions > [hidden]").length,
      folds: textOf(place).includes("…"),
    };
  };

  assert.deepEqual(await draw(3), { hidden: 0, folds: false });
  assert.deepEqual(await draw(6), { hidden: 3, folds: true });
  assert.deepEqual(await draw(3), { hidden: 0, folds: false });
  render(null, place);
  place.remove();
});
