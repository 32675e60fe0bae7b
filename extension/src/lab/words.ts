// Names of views and statuses, in the application's language.
import type { Summary } from "./server/messages";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { ViewName } from "../views";

/** The title of a view. */
export function titleOf(view: ViewName, trans: TranslationBundle): string {
  const titles: Record<ViewName, string> = {
    overview: trans.__("Overview"),
    topology: trans.__("Topology"),
    values: trans.__("Values"),
    array_sharding: trans.__("Array sharding"),
    dataset_sharding: trans.__("Dataset sharding"),
    input: trans.__("Input"),
    data_service: trans.__("Data service"),
    servers: trans.__("Servers"),
    collectives: trans.__("Collectives"),
    collective_table: trans.__("Collective timing"),
    lanes: trans.__("Lanes"),
    sweep: trans.__("Bandwidth over size"),
    heat_map: trans.__("Lateness"),
    stuck: trans.__("Stuck collectives"),
    log: trans.__("Alerts and log"),
    devices: trans.__("Devices"),
    runs: trans.__("Runs"),
    replay: trans.__("Recorded run"),
  };
  return titles[view];
}

/** What a view is for, beside its title. */
export function purposeOf(view: ViewName, trans: TranslationBundle): string {
  const purposes: Record<ViewName, string> = {
    overview: trans.__("at a glance"),
    topology: trans.__("who runs where"),
    values: trans.__("what replicas hold"),
    array_sharding: trans.__("who holds what"),
    dataset_sharding: trans.__("who reads what"),
    input: trans.__("what it costs"),
    data_service: trans.__("shared reading"),
    servers: trans.__("parameters"),
    collectives: trans.__("all timing"),
    collective_table: trans.__("times, rates"),
    lanes: trans.__("over time"),
    sweep: trans.__("by size"),
    heat_map: trans.__("by replica and step"),
    stuck: trans.__("who waits"),
    log: trans.__("what happened"),
    devices: trans.__("use, memory"),
    runs: trans.__("open, compare"),
    replay: trans.__("what was recorded"),
  };
  return purposes[view];
}

/** A status as the server sends it, translated if it is a known one. */
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

/** Whether the most important statement about a cluster deserves attention. */
export function isWrong({ severity }: Summary): boolean {
  return severity === "error" || severity === "warning";
}
