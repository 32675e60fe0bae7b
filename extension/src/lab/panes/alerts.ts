// Steps from alert to alert in a log: the log then shows only alerts, and its cursor moves between rows.
import type { AnyModel } from "../server/messages";
import { drawn } from "./actions";

const PATIENCE_MS = 5000;

/** Whether a view of recorded or live collectives draws a warning or an error. */
export function hasAlerts(model: AnyModel): boolean {
  const timed = "collectives" in model ? model.collectives : model;
  return (
    "snapshot" in timed &&
    timed.snapshot.events.some((event) => event.kind === "alert" || event.severity !== "info")
  );
}

/** Moves the cursor of the log in `body` to the next or previous alert; without a cursor, to the first or last one. */
export async function walk(body: HTMLElement, way: "next" | "previous"): Promise<void> {
  const filter = await appeared(body, () =>
    [...body.querySelectorAll("button")].find((button) => button.textContent.trim() === "Alerts"),
  );
  const isNew = filter?.getAttribute("aria-pressed") === "false";
  if (isNew) {
    filter.click();
    await drawn();
  }
  const grid = body.querySelector<HTMLElement>("[role=grid]");
  if (!grid) return; // no alert is left
  const press = (key: string) =>
    grid.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: true, bubbles: true }));
  if (isNew) {
    press("Home"); // the cursor was at a row of another list
    await drawn();
  }
  const isAtHeadings = grid.querySelector("th[tabindex='0']") !== null;
  if (way === "next") press("ArrowDown");
  else press(isAtHeadings ? "End" : "ArrowUp");
  await drawn();
  if (grid.querySelector("th[tabindex='0']")) press("ArrowDown"); // before the first one: stay there
  await drawn();
  const row = grid.querySelector("td[tabindex='0']")?.closest("tr");
  row?.querySelector(".wb-what")?.closest("td")?.focus(); // where Enter opens the view that explains it
}

/** The result of `find`, as soon as it is there. */
async function appeared<T>(body: HTMLElement, find: () => T | undefined): Promise<T | undefined> {
  const found = find();
  if (found) return found;
  return new Promise((resolve) => {
    const stop = (what: T | undefined) => {
      observer.disconnect();
      clearTimeout(timer);
      resolve(what);
    };
    const observer = new MutationObserver(() => {
      const now = find();
      if (now) stop(now);
    });
    observer.observe(body, { childList: true, subtree: true });
    const timer = setTimeout(() => stop(undefined), PATIENCE_MS);
  });
}
