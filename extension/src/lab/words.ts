// Names of views and of statuses, in the language of the application.
import type { TranslationBundle } from "@jupyterlab/translation";
import type { ViewName } from "../views";

/** The title of a view. */
export function titleOf(view: ViewName, trans: TranslationBundle): string {
  const titles: Record<ViewName, string> = {
    topology: trans.__("Topology"),
    values: trans.__("Values"),
    array_sharding: trans.__("Array sharding"),
    dataset_sharding: trans.__("Dataset sharding"),
    collectives: trans.__("Collectives"),
    collective_table: trans.__("Collective timing"),
    lanes: trans.__("Lanes"),
    sweep: trans.__("Bandwidth over size"),
    heat_map: trans.__("Lateness by replica and step"),
    stuck: trans.__("Stuck collectives"),
    log: trans.__("Alerts and log"),
    devices: trans.__("Devices"),
    runs: trans.__("Runs"),
    replay: trans.__("Recorded run"),
  };
  return titles[view];
}

/** A status as the server says it, translated if it is a known one. */
export function statusWord(word: string, trans: TranslationBundle): string {
  const words = new Map([
    ["starting", trans.__("starting")],
    ["live", trans.__("live")],
    ["stale", trans.__("stale")],
    ["stalled", trans.__("stalled")],
    ["lost", trans.__("lost")],
    ["stopped", trans.__("stopped")],
    ["replay", trans.__("replay")],
  ]);
  return words.get(word) ?? word;
}

/** What to say of states that a page was too slow for, and what that means; two empty texts if there are none. */
export function skippedWords(count: number, trans: TranslationBundle): [text: string, help: string] {
  if (!count) return ["", ""];
  return [
    trans._n("skipped %1 update to keep up", "skipped %1 updates to keep up", count, count),
    trans.__(
      "Updates came faster than this page could draw them, so it went on with newer ones. What you see is the newest state, and complete.",
    ),
  ];
}
