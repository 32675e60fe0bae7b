// The panes of the page: opens, finds and arranges them.
import type { JupyterFrontEnd } from "@jupyterlab/application";
import { WidgetTracker } from "@jupyterlab/apputils";
import { DockPanel, TabPanel, type Widget } from "@lumino/widgets";
import { joined } from "../../format";
import { IN_FRONT } from "./followed";
import {
  type Area,
  arranged,
  type Dock,
  homeOf,
  isRecorded,
  layoutOf,
  pruned,
  roomFor,
  same,
  stacked,
  type Tab,
  tabGroups,
  tabsOf,
} from "../layouts/layouts";
import type { ViewName } from "../../views";
import { Pane, type PaneArgs, type PaneServices } from "./pane";

/** Where a new pane goes: by default behind the last tab. */
export interface Place {
  activate: boolean;
  mode?: "split-right" | "split-bottom" | "tab-after";
  ref?: string;
}

/** In a narrower window, half of it would be too little for a notebook. */
const NARROW_PX = 1000;

export class Panes {
  readonly tracker = new WidgetTracker<Pane>({ namespace: "workbench" });

  constructor(
    private readonly shell: JupyterFrontEnd["shell"],
    private readonly services: PaneServices,
    private readonly icons: Readonly<Record<ViewName, unknown>>,
    /** Notebook 7 has a main area for only one document, and an area below for everything else. */
    private readonly area: "main" | "down",
  ) {}

  /** The pane that has, or last had, the focus. */
  get current(): Pane | null {
    const widget = this.shell.currentWidget;
    return widget instanceof Pane ? widget : this.tracker.currentWidget;
  }

  /** The pane that shows this already, or a new one. With a `key`, as in saved layouts, the pane with that key. */
  show(args: Omit<PaneArgs, "key"> & { key?: string | undefined }, place: Place = { activate: true }): Pane {
    const { view, run, cluster, key } = args;
    const there = this.tracker.find((pane) =>
      key === undefined
        ? same(pane.args, args) && (isRecorded(args) || pane.args.cluster === cluster)
        : pane.id === idOf(view, run, key),
    );
    const pane = there ?? this.#open({ view, run, cluster, key: key ?? this.#freeKey(args) }, place);
    if (place.activate) this.activate(pane);
    there?.lookAgain();
    return pane;
  }

  /** Where a pane goes that a user opens: among the existing panes, otherwise beside what the user works in. */
  beside(): Place {
    const { current } = this;
    if (!current) return { activate: true, mode: this.side() };
    const groups = tabGroups<Widget>(this.#lies(), (one) => one instanceof Pane);
    const { mode, ref } = roomFor<Widget>(groups, current, (one) => one.node.offsetHeight);
    return { activate: true, mode, ref: ref.id };
  }

  /** Where there is room beside a notebook; in a narrow window, below it. */
  side(): "split-right" | "split-bottom" {
    return window.innerWidth < NARROW_PX ? "split-bottom" : "split-right";
  }

  /** Brings a widget to the front. */
  activate(widget: Widget): void {
    this.shell.activateById(widget.id);
    const tabs = widget.parent?.parent;
    if (tabs instanceof TabPanel) tabs.currentWidget = widget; // in the area below, activating alone is not enough
  }

  /** Places panes as a layout says, opens missing ones, and closes all others of workbench. */
  arrange(wanted: Area): void {
    const area = this.side() === "split-bottom" ? stacked(wanted) : wanted;
    const follower = (tab: Tab) => this.show({ ...tab, cluster: IN_FRONT }, { activate: false });
    const open = new Set(tabsOf(area).map(follower));
    const all: Pane[] = [];
    this.tracker.forEach((pane) => all.push(pane));
    for (const pane of all) if (!open.has(pane)) pane.dispose();
    const dock = this.#dock();
    if (!dock || dock.mode === "single-document") return; // they are tabs there
    const others = pruned(dock.saveLayout().main as Dock<Widget> | null, (one) => !(one instanceof Pane));
    dock.restoreLayout({ main: arranged<Widget>(area, others, follower) });
  }

  /** All widgets of the page, with workbench's panes; nothing if there are no panes. */
  around(): Widget[] {
    return tabGroups<Widget>(this.#lies(), () => true).flat();
  }

  /** Moves a document that JupyterLab has opened among workbench's panes to the other documents. */
  sendHome(document: Widget): void {
    const home = homeOf<Widget>(this.#lies(), document, (one) => one instanceof Pane);
    if (home) this.shell.add(document, "main", { mode: "tab-after", ref: home.id, activate: true });
  }

  /** The present arrangement of the panes; null if there are none. */
  layout(): Area | null {
    return layoutOf(this.#lies(), (one) => (one instanceof Pane ? one.args : null));
  }

  #lies(): Dock<Widget> | null {
    return (this.#dock()?.saveLayout().main ?? null) as Dock<Widget> | null;
  }

  #dock(): DockPanel | null {
    const docked = this.tracker.find((pane) => pane.parent instanceof DockPanel);
    return docked ? (docked.parent as DockPanel) : null;
  }

  #open(args: PaneArgs, place: Place): Pane {
    const pane = new Pane(args, this.services);
    pane.id = idOf(args.view, args.run, args.key);
    pane.title.icon = this.icons[args.view];
    if (this.area === "down") pane.addClass("wb-pane-below");
    pane.onArgsChanged = () => void this.tracker.save(pane);
    this.shell.add(pane, this.area, { ...place });
    void this.tracker.add(pane);
    return pane;
  }

  /** Distinguishes several panes of one view; the first has none. */
  #freeKey(tab: Tab): string {
    const taken = new Set<string>();
    this.tracker.forEach((pane) => taken.add(pane.id));
    for (let number = 1; ; number++) {
      const key = number === 1 ? "" : String(number);
      if (!taken.has(idOf(tab.view, tab.run, key))) return key;
    }
  }
}

function idOf(view: string, run: string, key: string): string {
  return joined(["workbench-pane", view, run, key], "-");
}
