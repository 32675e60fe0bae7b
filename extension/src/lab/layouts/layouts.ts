// Named layouts: the panes, and how they are arranged around everything else.
import { known } from "../../format";
import { VIEWS, type ViewName } from "../../views";

/** A pane of a layout; it follows the notebook in front, or shows a recorded run. */
export interface Tab {
  view: ViewName;
  run: string;
}

/** A part of the main area. "others" stands for everything that is not a pane of workbench. */
export type Area =
  "others" | { tabs: Tab[]; current: number } | { split: "across" | "down"; parts: Area[]; sizes: number[] };

const MAX_DEPTH = 8;
const MAX_PARTS = 16;

const tabs = (...views: ViewName[]): Area => ({
  tabs: views.map((view) => ({ view, run: "" })),
  current: 0,
});
const beside = (above: Area, below?: Area): Area => ({
  split: "across",
  parts: ["others", below ? { split: "down", parts: [above, below], sizes: [1, 1] } : above],
  sizes: [1, 1],
});

/** Workbench's own layouts; tests compare the names with `workbench/ui/layouts.py`. */
export const SHIPPED = {
  overview: beside(tabs("overview", "lanes", "log")),
  collectives: beside(tabs("collective_table", "sweep"), tabs("lanes", "heat_map")),
  debugging: beside(tabs("stuck", "log"), tabs("values", "lanes")),
  data: beside(
    tabs("dataset_sharding", "input", "data_service"),
    tabs("array_sharding", "values", "servers"),
  ),
} satisfies Record<string, Area>;

/** The layout for a window that is too narrow for panes beside everything else: places them below. */
export function stacked(area: Area): Area {
  const isBeside =
    typeof area === "object" && "split" in area && area.split === "across" && area.parts.includes("others");
  return isBeside ? turned(area) : area;
}

function turned(area: Area): Area {
  if (area === "others" || "tabs" in area) return area;
  return { ...area, split: area.split === "across" ? "down" : "across", parts: area.parts.map(turned) };
}

/** The layout in the settings, which users can edit; null if it is invalid. */
export function readArea(value: unknown, depth = 0): Area | null {
  if (value === "others") return value;
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return null;
  if ("tabs" in value && Array.isArray(value.tabs) && value.tabs.length) {
    const found = value.tabs.slice(0, MAX_PARTS).map(readTab);
    const current = "current" in value ? Number(value.current) : 0;
    return found.includes(null) ? null : { tabs: found as Tab[], current: found[current] ? current : 0 };
  }
  if ("split" in value && "parts" in value && Array.isArray(value.parts) && value.parts.length) {
    const parts = value.parts.slice(0, MAX_PARTS).map((part: unknown) => readArea(part, depth + 1));
    if (parts.includes(null) || (value.split !== "across" && value.split !== "down")) return null;
    const given = "sizes" in value && Array.isArray(value.sizes) ? value.sizes.map(Number) : [];
    const sizes = parts.map((_, index) => ((given[index] ?? 0) > 0 ? Math.min(given[index] ?? 1, 1e6) : 1));
    return { split: value.split, parts: parts as Area[], sizes };
  }
  return null;
}

function readTab(value: unknown): Tab | null {
  const tab = typeof value === "string" ? { view: value } : value;
  if (typeof tab !== "object" || tab === null || !("view" in tab)) return null;
  const { view } = tab;
  if (typeof view !== "string" || !Object.hasOwn(VIEWS, view)) return null;
  const run = "run" in tab && typeof tab.run === "string" ? tab.run : "";
  return { view: view as ViewName, run };
}

/** The panes of a layout, each once. */
export function tabsOf(area: Area): Tab[] {
  if (area === "others") return [];
  const all = "tabs" in area ? area.tabs : area.parts.flatMap(tabsOf);
  return all.filter((tab, index) => all.findIndex((one) => same(one, tab)) === index);
}

/** Whether a pane shows recorded data, whatever the cluster. */
export function isRecorded({ view, run }: Tab): boolean {
  return run !== "" || view === "runs";
}

export function same(one: Tab, other: Tab): boolean {
  return one.view === other.view && one.run === other.run;
}

/** How Lumino's dock panels describe their arrangement. */
export type Dock<W> =
  | { type: "tab-area"; widgets: W[]; currentIndex: number }
  | { type: "split-area"; orientation: "horizontal" | "vertical"; children: Dock<W>[]; sizes: number[] };

/** The widgets of each tab bar that has at least one for which `isOurs` is true. */
export function tabGroups<W>(dock: Dock<W> | null, isOurs: (widget: W) => boolean): W[][] {
  if (dock === null) return [];
  if (dock.type === "split-area") return dock.children.flatMap((child) => tabGroups(child, isOurs));
  return dock.widgets.some(isOurs) ? [dock.widgets] : [];
}

/** The other document that a document opened among workbench's panes belongs behind; null if it is placed well. */
export function homeOf<W>(dock: Dock<W> | null, document: W, isOurs: (widget: W) => boolean): W | null {
  const bars = tabGroups(dock, () => true);
  if (!bars.some((bar) => bar.includes(document) && bar.some(isOurs))) return null;
  return bars.find((bar) => !bar.some(isOurs))?.at(-1) ?? null;
}

/** With more tabs in a bar of half a window, titles become icons. */
const READABLE_TABS = 4;

/** A smaller part has too little room for a view. */
const LEAST_HEIGHT_PX = 280;

/** Where another pane gets a readable tab: in the bar of `current`, in another one, or in a new one below. */
export function roomFor<W>(
  groups: readonly W[][],
  current: W,
  heightOf: (widget: W) => number,
): { mode: "tab-after" | "split-bottom"; ref: W } {
  const own = groups.find((group) => group.includes(current)) ?? [current];
  const after = (group: readonly W[]) => ({
    mode: "tab-after" as const,
    ref: group.includes(current) ? current : group[group.length - 1]!,
  });
  const free = [own, ...groups].find((group) => group.length < READABLE_TABS);
  if (free) return after(free);
  const height = (group: readonly W[]) => Math.max(...group.map(heightOf)); // those behind the front one have no size
  const tallest = [...groups].sort((one, other) => height(other) - height(one))[0] ?? own;
  if (height(tallest) >= 2 * LEAST_HEIGHT_PX) return { ...after(tallest), mode: "split-bottom" };
  return after([...groups].sort((one, other) => one.length - other.length)[0] ?? own);
}

/** The dock's arrangement for a layout. `others` keeps its own arrangement; each widget has one place, the first. */
export function arranged<W>(area: Area, others: Dock<W> | null, widgetOf: (tab: Tab) => W): Dock<W> | null {
  const placed = new Set<W>();
  let othersPlaced = false;
  const place = (part: Area): Dock<W> | null => {
    if (part === "others") {
      const first = othersPlaced ? null : others;
      othersPlaced = true;
      return first;
    }
    if ("tabs" in part) {
      const chosen = part.tabs[part.current];
      const widgets = part.tabs.map(widgetOf).filter((widget) => !placed.has(widget) && placed.add(widget));
      const currentIndex = chosen ? Math.max(0, widgets.indexOf(widgetOf(chosen))) : 0;
      return widgets.length ? { type: "tab-area", widgets, currentIndex } : null;
    }
    return split(part.split === "across" ? "horizontal" : "vertical", part.parts.map(place), part.sizes);
  };
  const all = place(area);
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- `place` changes it
  return othersPlaced || !others ? all : split("horizontal", [others, all], [1, 1]);
}

/** The arrangement without the widgets that do not `stay`. */
export function pruned<W>(dock: Dock<W> | null, stay: (widget: W) => boolean): Dock<W> | null {
  if (dock === null) return null;
  if (dock.type === "split-area") {
    return split(
      dock.orientation,
      dock.children.map((child) => pruned(child, stay)),
      dock.sizes,
    );
  }
  const widgets = dock.widgets.filter(stay);
  const current = dock.widgets[dock.currentIndex];
  const currentIndex = current === undefined ? 0 : Math.max(0, widgets.indexOf(current));
  return widgets.length ? { type: "tab-area", widgets, currentIndex } : null;
}

/** The layout that an arrangement matches; null if it has no pane of workbench. */
export function layoutOf<W>(dock: Dock<W> | null, tabOf: (widget: W) => Tab | null): Area | null {
  let othersSeen = false;
  const others = (): Area | null => {
    if (othersSeen) return null;
    othersSeen = true;
    return "others";
  };
  const look = (part: Dock<W>): Area | null => {
    if (part.type === "split-area") {
      const kept = part.children.map(look);
      const parts = known(kept);
      const sizes = part.sizes.filter((_, index) => kept[index] !== null);
      if (parts.length < 2) return parts[0] ?? null;
      return { split: part.orientation === "horizontal" ? "across" : "down", parts, sizes };
    }
    const found = part.widgets.map(tabOf);
    const ours = known(found);
    if (!ours.length) return others();
    const chosen = found[part.currentIndex];
    const tabs = ours.map(({ view, run }) => ({ view, run }));
    const area: Area = { tabs, current: chosen ? ours.indexOf(chosen) : 0 };
    const rest = ours.length < found.length ? others() : null; // a notebook among workbench's tabs goes beside them
    return rest ? { split: "across", parts: [rest, area], sizes: [1, 1] } : area;
  };
  const area = dock && look(dock);
  return area && tabsOf(area).length ? area : null;
}

function split<W>(
  orientation: "horizontal" | "vertical",
  children: (Dock<W> | null)[],
  sizes: number[],
): Dock<W> | null {
  const kept = known(children);
  if (kept.length < 2) return kept[0] ?? null;
  const own = sizes.filter((_, index) => children[index] !== null);
  return { type: "split-area", orientation, children: kept, sizes: own };
}
