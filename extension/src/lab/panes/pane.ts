// A pane: one view of one cluster, which it finds by itself, or of a recorded run.
import type { TranslationBundle } from "@jupyterlab/translation";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";
import { type Mounted, mount, placeholder } from "../../mount";
import { pageSelection } from "../../selection";
import type { Request } from "../../view";
import type { ViewName } from "../../views";
import type { Api } from "../server/api";
import type { Connection } from "../server/connection";
import { act, type Action, can, isOn, turnOff } from "./actions";
import { hasAlerts, walk } from "./alerts";
import { isRecorded } from "../layouts/layouts";
import { type Baselines, sweepsOf } from "./baselines";
import { LINES, noRun, nothingYet, skeleton } from "./no_run";
import { type Followed, IN_FRONT, NEWEST } from "./followed";
import { type AnyModel, CHANNEL_OF, type Channel, type ClusterInfo, RUNS } from "../server/messages";
import { statusWord, titleOf } from "../words";

/** What a pane shows, in the form of the saved layout. */
export interface PaneArgs {
  view: ViewName;
  /** Id of a cluster, `IN_FRONT` or `NEWEST`. */
  cluster: string;
  /** Path of a recorded run, or "". */
  run: string;
  /** Distinguishes several panes of one view. */
  key: string;
}

export interface PaneServices {
  connection: Connection;
  followed: Followed;
  api: Api;
  baselines: Baselines;
  trans: TranslationBundle;
  openRun(path: string): void;
  /** Inserts code as a new cell in the notebook in front. */
  insertCode(code: string): void;
}

/** Views that draw sweeps from a model. */
const SWEEPING: ReadonlySet<ViewName> = new Set(["sweep", "collectives", "replay"]);

export class Pane extends Widget {
  #args: PaneArgs;
  #services: PaneServices;
  #mounted: Mounted<AnyModel> | null = null;
  #shown = new AbortController();
  #watching: string | null | undefined; // the cluster whose channel is watched; null: none; undefined: look again
  #connected = false; // whether the Jupyter server was connected at the last look
  #stopWatching = new AbortController();
  #loading = new AbortController(); // aborted when the answer is no longer wanted
  #empty: (() => void) | null = null; // removes what is shown without a model
  #model: AnyModel | null = null; // the drawn model, as it came
  #part: Element | null = null; // the part of the view that has or had the focus
  #compared: string[] = [];
  #steps: number[] = [];
  #select: HTMLSelectElement;
  #note: HTMLElement;
  #body: HTMLElement;
  /** The saved layout has to change. */
  onArgsChanged: () => void = () => undefined;

  constructor(args: PaneArgs, services: PaneServices) {
    super();
    const { trans } = services;
    this.#args = args;
    this.#services = services;
    this.addClass("wb-pane");
    this.node.tabIndex = -1;
    const title = titleOf(args.view, trans);
    // The name first, because a narrow tab shows only the beginning.
    this.title.label = args.run ? `${nameOf(args.run)}: ${title}` : title;
    this.title.caption = args.run || title;
    this.title.closable = true;

    const bar = document.createElement("div");
    bar.className = "wb-pane-bar";
    this.#select = document.createElement("select");
    this.#select.setAttribute("aria-label", trans.__("Cluster"));
    this.#select.addEventListener("change", () => this.follow(this.#select.value));
    this.#select.hidden = args.run !== "" || args.view === "runs";
    this.#note = document.createElement("span");
    this.#note.setAttribute("role", "status");
    bar.append(this.#select, this.#note);
    this.#body = document.createElement("div");
    this.#body.className = "wb-pane-body";
    this.#body.addEventListener("focusin", (event) => {
      this.#part = (event.target as Element).closest(".wb-part");
    });
    this.node.append(bar, this.#body);
  }

  get args(): PaneArgs {
    return this.#args;
  }

  /** Shows another cluster: one by its id, or whichever `IN_FRONT` or `NEWEST` means. */
  follow(cluster: string): void {
    this.#args = { ...this.#args, cluster };
    this.onArgsChanged();
    this.#refresh();
  }

  /** Reads recorded data again: a run's name may now have another recording, and the list other runs. */
  lookAgain(): void {
    if (this.isVisible && isRecorded(this.#args)) void this.#load();
  }

  /** Shows the next cluster. */
  next(): void {
    const { connection, followed } = this.#services;
    const id = connection.after(followed.find(this.#args.cluster)?.id ?? "");
    if (id) this.follow(id);
  }

  can(action: Action): boolean {
    return can(this.#body, action);
  }

  isOn(action: Action): boolean {
    return isOn(this.#body, action);
  }

  async act(action: Action): Promise<void> {
    await act(this.#body, this.#part?.isConnected ? this.#part : null, action);
  }

  /** Whether it shows other steps than the newest. */
  get isBehind(): boolean {
    return this.isOn("pause") || (this.#model !== null && pageSelection.now.range !== null);
  }

  /** Shows the newest steps again, in all panes, and resumes updates. */
  catchUp(): void {
    pageSelection.brush(null);
    turnOff(this.#body, "pause");
  }

  /** Whether something is known to have gone wrong in what it shows. */
  get hasAlerts(): boolean {
    const { run, cluster } = this.#args;
    if (this.#model && ("snapshot" in this.#model || "collectives" in this.#model))
      return hasAlerts(this.#model);
    return run !== "" || (this.#services.followed.find(cluster)?.summary.alerts ?? 0) > 0;
  }

  /** Moves to the next alert, if this is the log. */
  async walk(way: "next" | "previous"): Promise<void> {
    await walk(this.#body, way);
  }

  /** Makes the sweeps that it draws the baseline of later ones. */
  async takeBaseline(): Promise<void> {
    const { run, cluster } = this.#args;
    const of = run ? nameOf(run) : (this.#services.followed.find(cluster)?.name ?? "");
    const when = new Date().toLocaleString([], { dateStyle: "short", timeStyle: "short" });
    await this.#services.baselines.keep({ name: `${of}, ${when}`, sweeps: this.sweeps });
  }

  /** The sweeps that it draws. */
  get sweeps() {
    return SWEEPING.has(this.#args.view) ? sweepsOf(this.#model) : [];
  }

  /** Shows two recorded runs side by side, in the list of runs. */
  compare(first: string, second: string): void {
    this.#compared = [first, second];
    void this.#load();
  }

  override dispose(): void {
    this.#hide();
    this.#loading.abort();
    this.#clear();
    super.dispose();
  }

  protected override onAfterAttach(): void {
    if (this.isVisible) this.#appear();
  }

  protected override onAfterShow(): void {
    this.#appear();
  }

  protected override onAfterHide(): void {
    this.#hide();
  }

  protected override onBeforeDetach(): void {
    this.#hide();
  }

  protected override onActivateRequest(_: Message): void {
    if (this.#body.contains(document.activeElement)) return;
    if (!this.#focusInside()) this.node.focus();
  }

  #focusInside(): boolean {
    const first = this.#body.querySelector<HTMLElement>("[tabindex='0'], button, select, input");
    first?.focus();
    return first !== null;
  }

  #appear(): void {
    this.#hide();
    this.#shown = new AbortController();
    this.#services.baselines.listen(() => this.#model && this.#draw(this.#model), this.#shown.signal);
    if (isRecorded(this.#args)) {
      void this.#load();
      if (this.#args.view === "runs")
        this.#services.connection.watch("", RUNS, () => void this.#load(), this.#shown.signal);
    } else {
      this.#services.followed.listen(() => this.#refresh(), this.#shown.signal);
      this.#refresh();
    }
  }

  /** A hidden pane costs nothing: it requests no model. */
  #hide(): void {
    this.#shown.abort();
    this.#stopWatching.abort();
    this.#watching = undefined;
  }

  #refresh(): void {
    if (this.#shown.signal.aborted) return;
    const { connection, followed, trans } = this.#services;
    const cluster = followed.find(this.#args.cluster);
    this.title.label = this.#title(cluster);
    this.#offer();
    const channel: Channel = CHANNEL_OF[this.#args.view as keyof typeof CHANNEL_OF];
    const { connected } = connection;
    if (!connected) this.#tell(trans.__("connecting to the Jupyter server …"));
    else if (!cluster) this.#tell(this.#none());
    else this.#tellOf(cluster.id, channel);
    const watched = cluster?.id ?? null;
    // Without a cluster, the content depends on the connection.
    if (this.#watching === watched && (cluster || this.#connected === connected)) return;
    this.#stopWatching.abort();
    this.#stopWatching = new AbortController();
    this.#watching = watched;
    this.#connected = connected;
    if (!cluster) {
      this.#clear(); // it shows another notebook's cluster
      this.#showNothing(connected ? "nothing" : "loading");
      return;
    }
    const draw = () => {
      const model = connection.model(cluster.id, channel);
      if (model === undefined) return;
      this.#tellOf(cluster.id, channel);
      this.#draw(model);
    };
    if (connection.model(cluster.id, channel) === undefined) {
      this.#clear();
      this.#showNothing("loading");
    }
    connection.watch(cluster.id, channel, draw, this.#stopWatching.signal);
    draw();
  }

  /** Why there is no cluster to show. */
  #none(): string {
    const { connection, followed, trans } = this.#services;
    const name = followed.front?.name;
    if (!name) return trans.__("no cluster yet; run wb.connect() in a notebook");
    if (!connection.newest()) return trans.__("no cluster yet; run wb.connect() in %1", name);
    return trans.__("%1 drives no cluster; choose another one here, or run wb.connect() there", name);
  }

  /** With the name of the cluster, unless it follows something. */
  #title(cluster: ClusterInfo | undefined): string {
    const title = titleOf(this.#args.view, this.#services.trans);
    return cluster && cluster.id === this.#args.cluster ? `${title}: ${cluster.name}` : title;
  }

  #tell(text: string): void {
    this.#note.textContent = text;
  }

  /** Says what a user can do to see something here. */
  #tellOf(cluster: string, channel: Channel): void {
    const known = this.#services.connection.model(cluster, channel) !== undefined;
    this.#tell(known ? "" : this.#missing(channel));
  }

  #missing(channel: Channel): string {
    const { trans } = this.#services;
    if (LINES[channel]) return trans.__("nothing to show yet");
    return trans.__("waiting for the cluster …");
  }

  #offer(): void {
    const { connection, followed, trans } = this.#services;
    const drivers = connection.clusters.filter((one) => one.kind === "driver");
    const options = drivers.map(
      (one) => [one.id, `${one.name} (${one.id}), ${statusWord(one.summary.status, trans)}`] as const,
    );
    const all = [
      [IN_FRONT, trans.__("notebook in front: %1", followed.front?.name ?? "–")] as const,
      [NEWEST, trans.__("newest: %1", connection.newest()?.name ?? "–")] as const,
      ...options,
    ];
    const chosen = all.some(([id]) => id === this.#args.cluster) ? this.#args.cluster : IN_FRONT;
    const state = JSON.stringify(all);
    if (this.#select.dataset["state"] !== state) {
      this.#select.dataset["state"] = state;
      this.#select.replaceChildren(...all.map(([id, label]) => new Option(label, id)));
    }
    this.#select.value = chosen;
  }

  #draw(given: AnyModel): void {
    const { view } = this.#args;
    const model = this.#services.baselines.under(given);
    if (this.#mounted) this.#mounted.update(model);
    else {
      this.#clear();
      // Views offer requests only where someone answers, which is the case for recorded runs only.
      const asks = view === "runs" || view === "replay";
      const options = asks ? { ask: (request: Request) => this.#answer(request) } : {};
      this.#mounted = mount(view, this.#body, model, options);
      if (document.activeElement === this.node) this.#focusInside(); // it was activated before it had content
    }
    this.#model = given;
  }

  #clear(): void {
    if (this.#body.contains(document.activeElement)) this.node.focus(); // the focused element goes away
    this.#model = null;
    this.#mounted?.unmount();
    this.#mounted = null;
    this.#empty?.();
    this.#empty = null;
  }

  /** What a pane shows before there is a run: how to get one; or the frame, or the line of code, of what will come. */
  #showNothing(what: "nothing" | "loading"): void {
    const { insertCode, openRun, trans } = this.#services;
    const { view } = this.#args;
    const line = LINES[CHANNEL_OF[view as keyof typeof CHANNEL_OF]];
    let content = null;
    if (what === "nothing") content = noRun(trans, insertCode, () => openRun(""));
    else if (view === "overview") content = skeleton();
    else if (line) content = nothingYet(trans, line);
    if (content) this.#empty = placeholder(view, this.#body, content);
  }

  async #load(said = ""): Promise<void> {
    const { api, trans } = this.#services;
    this.#loading.abort(); // only the newest answer counts, even if it does not come last
    this.#loading = new AbortController();
    const { signal } = this.#loading;
    let note = said;
    if (!this.#mounted) this.#tell(trans.__("reading what was recorded …")); // takes some seconds for a large run
    try {
      const model = this.#args.run ? await this.#recorded() : await api.runs(this.#compared);
      if (signal.aborted) return;
      if (model) this.#draw(model);
      else note = trans.__("nothing of this was recorded");
    } catch (error) {
      note = error instanceof Error ? error.message : String(error);
      if (!signal.aborted && this.#compared.length) {
        this.#compared = []; // one of the two has gone or is damaged: show the list without them
        return this.#load(note);
      }
    }
    if (!signal.aborted) this.#tell(note);
  }

  /** The part of a recorded run that this view draws, or null. */
  async #recorded(): Promise<AnyModel | null> {
    const { view, run } = this.#args;
    const replay = await this.#services.api.run(run, this.#steps);
    if (view === "replay" || view === "runs") return replay;
    return replay[CHANNEL_OF[view]];
  }

  #answer(request: Request): void {
    if (request.kind === "show_steps") {
      this.#steps = [request.first, request.last];
      void this.#load();
    }
    if (request.kind === "open_run") this.#services.openRun(request.path);
    if (request.kind === "compare_runs") this.compare(request.first, request.second);
  }
}

/** A recorded run's name in lists: without folder and ".parquet". */
function nameOf(run: string): string {
  return (run.split("/").at(-1) ?? "").replace(/\.parquet$/, "");
}
