// The left panel: clusters, strategies, panes, recorded runs.
import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";
import { render } from "preact";
import { useState } from "preact/hooks";
import { statusOf } from "../../colours";
import type { RunEntry, Runs as RunList } from "../../models";
import { OPENED, type ViewName } from "../../views";
import type { Connection } from "../server/connection";
import { dragConnectCode } from "./connect_code";
import { type ClusterInfo, RUNS } from "../server/messages";
import { isWrong, statusWord, titleOf } from "../words";

/** As many workers a cluster of the panel can have; tests compare it with `workbench/server/clusters.py`. */
export const MAX_REPLICAS = 256;

/** What the panel can have done. */
export interface PanelActions {
  start(replicas: number): Promise<unknown>;
  scale(cluster: ClusterInfo, replicas: number): Promise<unknown>;
  stop(cluster: ClusterInfo): Promise<void>;
  insert(cluster: ClusterInfo): void;
  openPane(view: ViewName, cluster: string): void;
  openRun(path: string): void;
  openLayout(name: string): void;
  saveLayout(): void;
}

/** Names of layouts, which change. */
export interface LayoutNames {
  readonly names: readonly string[];
  listen(changed: () => void, signal: AbortSignal): void;
}

interface Props {
  connection: Connection;
  layouts: readonly string[];
  actions: PanelActions;
  trans: TranslationBundle;
  /** Undefined until the server has told. */
  runs: readonly RunEntry[] | undefined;
  problem: string;
  attempt(what: () => Promise<unknown>): void;
}

export class Panel extends Widget {
  #shown = new AbortController();
  #problem = "";

  constructor(
    private readonly connection: Connection,
    private readonly layouts: LayoutNames,
    private readonly actions: PanelActions,
    private readonly trans: TranslationBundle,
  ) {
    super();
    this.id = "workbench-panel";
    this.addClass("wb-panel");
    this.title.caption = trans.__("Workbench: clusters, strategies, panes, recorded runs");
    this.node.setAttribute("role", "region");
    this.node.setAttribute("aria-label", trans.__("Workbench"));
  }

  protected override onAfterShow(): void {
    this.#appear();
  }

  protected override onAfterAttach(): void {
    if (this.isVisible) this.#appear();
  }

  protected override onAfterHide(): void {
    this.#shown.abort();
  }

  protected override onBeforeDetach(): void {
    this.#shown.abort();
    render(null, this.node);
  }

  protected override onActivateRequest(): void {
    this.node.querySelector<HTMLElement>("button, input")?.focus();
  }

  #appear(): void {
    this.#shown.abort();
    this.#shown = new AbortController();
    this.#problem = "";
    this.connection.listen(() => this.#draw(), this.#shown.signal);
    this.connection.watch("", RUNS, () => this.#draw(), this.#shown.signal);
    this.layouts.listen(() => this.#draw(), this.#shown.signal);
    this.#draw();
  }

  #attempt(what: () => Promise<unknown>): void {
    this.#problem = "";
    what().then(
      () => this.#draw(),
      (error: unknown) => {
        this.#problem = error instanceof Error ? error.message : String(error);
        this.#draw();
      },
    );
  }

  #draw(): void {
    const { connection, actions, trans } = this;
    const attempt = (what: () => Promise<unknown>) => this.#attempt(what);
    const layouts = this.layouts.names;
    const told = connection.model("", RUNS) as RunList | undefined;
    const state = { layouts, runs: told?.runs, problem: this.#problem };
    const props = { connection, actions, trans, attempt, ...state };
    render(<Contents {...props} />, this.node);
  }
}

function Contents(props: Props) {
  const { connection, trans, problem } = props;
  const running = connection.clusters.filter((cluster) => cluster.summary.status !== "stopped");
  const strategies = running.flatMap((cluster) =>
    cluster.summary.strategies.map((strategy, index) => ({
      cluster,
      strategy,
      key: `${cluster.id} ${index}`,
    })),
  );
  return (
    <>
      {problem && (
        <p class="wb-panel-problem" role="alert">
          {problem}
        </p>
      )}
      <section aria-label={trans.__("Clusters")}>
        <h2>{trans.__("Clusters")}</h2>
        <StartForm {...props} />
        {!connection.connected && <p>{trans.__("connecting to the Jupyter server …")}</p>}
        {connection.connected && !connection.clusters.length && (
          <p>
            {trans.__(
              "None yet. They appear here by themselves: run wb.connect() in a notebook or a script.",
            )}
          </p>
        )}
        <ul>
          {connection.clusters.map((cluster) => (
            <Cluster key={cluster.id} cluster={cluster} {...props} />
          ))}
        </ul>
      </section>
      <section aria-label={trans.__("Strategies")}>
        <h2>{trans.__("Strategies")}</h2>
        {!strategies.length && <p>{trans.__("None yet.")}</p>}
        <ul>
          {strategies.map(({ cluster, strategy, key }) => (
            <li key={key}>
              <Status word={strategy.status} trans={trans} /> {strategy.label}
              <small>
                {trans._n("%1 replica", "%1 replicas", strategy.replicas, strategy.replicas)}
                {strategy.step >= 0 && `, ${trans.__("step %1", strategy.step)}`}, {cluster.name}
              </small>
            </li>
          ))}
        </ul>
      </section>
      <section aria-label={trans.__("Panes")}>
        <h2>{trans.__("Panes")}</h2>
        <div class="wb-panel-panes">
          {OPENED.map((view) => (
            <button key={view} type="button" onClick={() => props.actions.openPane(view, "")}>
              {titleOf(view, trans)}
            </button>
          ))}
        </div>
      </section>
      <section aria-label={trans.__("Layouts")}>
        <h2>{trans.__("Layouts")}</h2>
        <div class="wb-panel-panes">
          {props.layouts.map((name) => (
            <button key={name} type="button" onClick={() => props.actions.openLayout(name)}>
              {name}
            </button>
          ))}
          <button type="button" onClick={() => props.actions.saveLayout()}>
            {trans.__("Save …")}
          </button>
        </div>
      </section>
      <Runs {...props} />
    </>
  );
}

function StartForm({ actions, trans, attempt }: Props) {
  const [replicas, setReplicas] = useState("2");
  const [starting, setStarting] = useState(false);
  const start = (event: Event) => {
    event.preventDefault();
    setStarting(true);
    attempt(() => actions.start(Number(replicas)).finally(() => setStarting(false)));
  };
  return (
    <form class="wb-panel-start" onSubmit={start}>
      <label>
        {trans.__("Replicas")} <ReplicasInput value={replicas} onChange={setReplicas} />
      </label>
      <button type="submit" disabled={starting}>
        {starting ? trans.__("Starting …") : trans.__("Start workers")}
      </button>
    </form>
  );
}

function Cluster({ cluster, actions, trans, attempt }: Props & { cluster: ClusterInfo }) {
  const { summary } = cluster;
  const over = summary.status === "stopped";
  return (
    <li
      class="wb-cluster"
      data-id={cluster.id}
      onPointerDown={(event) => dragConnectCode(event, event.currentTarget, cluster)}
      title={`${summary.text}\n${trans.__("Drag into a notebook to connect.")}`}
    >
      <Status word={summary.status} trans={trans} /> <b>{cluster.name}</b>
      <small>
        {trans.__("%1 of %2 replicas", summary.replicas_live, summary.replicas)}
        {summary.hosts > 1 && `, ${trans.__("%1 hosts", summary.hosts)}`}
        {cluster.workers_of && `, ${trans.__("on workers %1", cluster.workers_of)}`}
        {!over && isWrong(summary) && `, ⚠ ${summary.sentence}`}
      </small>
      <div class="wb-panel-buttons">
        {!over && (
          <button
            type="button"
            onClick={() => actions.insert(cluster)}
            aria-label={named(trans.__("Insert code"), cluster)}
          >
            {trans.__("Insert code")}
          </button>
        )}
        {cluster.kind === "driver" && (
          <button
            type="button"
            onClick={() => actions.openPane("collectives", cluster.id)}
            aria-label={named(trans.__("Timing"), cluster)}
          >
            {trans.__("Timing")}
          </button>
        )}
        {cluster.kind === "workers" && !over && (
          // Begun anew where the number has changed, which another page can do.
          <ScaleForm
            key={summary.replicas}
            cluster={cluster}
            actions={actions}
            trans={trans}
            attempt={attempt}
          />
        )}
        <button
          type="button"
          aria-label={named(over ? trans.__("Forget") : trans.__("Stop"), cluster)}
          onClick={() => attempt(() => actions.stop(cluster))}
        >
          {over ? trans.__("Forget") : trans.__("Stop")}
        </button>
      </div>
    </li>
  );
}

function ScaleForm({
  cluster,
  actions,
  trans,
  attempt,
}: Pick<Props, "actions" | "trans" | "attempt"> & { cluster: ClusterInfo }) {
  const [replicas, setReplicas] = useState(String(cluster.summary.replicas));
  const [scaling, setScaling] = useState(false);
  const scale = (event: Event) => {
    event.preventDefault();
    setScaling(true);
    attempt(() => actions.scale(cluster, Number(replicas)).finally(() => setScaling(false)));
  };
  const label = named(trans.__("Replicas"), cluster);
  return (
    <form class="wb-panel-scale" onSubmit={scale}>
      <ReplicasInput value={replicas} onChange={setReplicas} label={label} />
      <button type="submit" disabled={scaling} aria-label={named(trans.__("Scale"), cluster)}>
        {scaling ? trans.__("Scaling …") : trans.__("Scale")}
      </button>
    </form>
  );
}

/** A number of replicas, as it was typed. The form around it is not sent before it can be one. */
function ReplicasInput(props: { value: string; onChange(value: string): void; label?: string }) {
  return (
    <input
      type="number"
      required
      min={1}
      max={MAX_REPLICAS}
      value={props.value}
      aria-label={props.label}
      onInput={(event) => props.onChange(event.currentTarget.value)}
    />
  );
}

function Runs({ actions, trans, runs }: Props) {
  return (
    <section aria-label={trans.__("Recorded runs")}>
      <h2>{trans.__("Recorded runs")}</h2>
      {runs?.length === 0 && <p>{trans.__('None yet. wb.record("runs/first.parquet") makes one.')}</p>}
      <ul>
        {runs?.slice(0, 20).map((run) => (
          <li key={run.path}>
            <button
              type="button"
              disabled={run.problem !== ""}
              title={run.problem || run.path}
              onClick={() => actions.openRun(run.path)}
            >
              {run.name}
            </button>
            <small>{run.written.replace("T", " ").slice(0, 16)}</small>
          </li>
        ))}
      </ul>
      <div class="wb-panel-buttons">
        <button type="button" onClick={() => actions.openPane("runs", "")}>
          {trans.__("All runs, and compare two")}
        </button>
      </div>
    </section>
  );
}

/** The sign of a status word, as in all views. */
function Status({ word, trans }: { word: string; trans: TranslationBundle }) {
  const { sign, colour } = statusOf(word);
  const said = statusWord(word, trans);
  return (
    <span class={`wb-status-${word}`} role="img" aria-label={said} title={said} style={{ color: colour }}>
      {sign}
    </span>
  );
}

function named(action: string, cluster: ClusterInfo): string {
  return `${action}: ${cluster.name}`;
}
