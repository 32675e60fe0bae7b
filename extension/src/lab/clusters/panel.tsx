// The left panel: clusters, strategies, panes, recorded runs.
import type { IStateDB } from "@jupyterlab/statedb";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";
import { render } from "preact";
import { statusOf } from "../../colours";
import type { RunEntry, Runs as RunList } from "../../models";
import { OPENED, type ViewName } from "../../views";
import { actionShapes, shapesOf } from "../icons";
import type { Connection } from "../server/connection";
import { dragConnectCode } from "./connect_code";
import { type ClusterInfo, RUNS } from "../server/messages";
import type { Settings } from "../settings";
import { isWrong, purposeOf, statusWord, titleOf } from "../words";
import { Kept } from "./kept";
import { KeptFocus } from "./kept_focus";
import { Section } from "./section";
import { Presets } from "./presets";
import { described, ScaleForm, StartForm } from "./worker_forms";
import { isResizable, type WorkerOptions } from "./worker_options";

/** The actions of the panel. */
export interface PanelActions {
  start(options: WorkerOptions): Promise<unknown>;
  scale(cluster: ClusterInfo, replicas: number, maximum: number): Promise<unknown>;
  stop(cluster: ClusterInfo): Promise<void>;
  insert(cluster: ClusterInfo): void;
  openPane(view: ViewName, cluster: string): void;
  openRun(path: string): void;
  openLayout(name: string): void;
  saveLayout(): void;
}

/** Names of layouts, which may change. */
export interface LayoutNames {
  readonly names: readonly string[];
  listen(changed: () => void, signal: AbortSignal): void;
}

interface Props {
  connection: Connection;
  layouts: readonly string[];
  actions: PanelActions;
  trans: TranslationBundle;
  /** Undefined until the server has answered. */
  runs: readonly RunEntry[] | undefined;
  problem: string;
  kept: Kept;
  presets: Presets;
  redraw(): void;
  attempt(what: () => Promise<unknown>): void;
}

export class Panel extends Widget {
  #shown = new AbortController();
  #problem = "";
  readonly #kept: Kept;
  readonly #presets: Presets;

  constructor(
    private readonly connection: Connection,
    private readonly layouts: LayoutNames,
    private readonly actions: PanelActions,
    private readonly trans: TranslationBundle,
    private readonly settings: Settings,
    state: IStateDB | null,
  ) {
    super();
    this.#presets = new Presets(settings, trans);
    this.#kept = new Kept(state, () => this.isVisible && this.#draw());
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
    this.settings.listen(() => this.#draw(), this.#shown.signal);
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
    const state = {
      layouts,
      runs: told?.runs,
      problem: this.#problem,
      kept: this.#kept,
      presets: this.#presets,
    };
    const props = { connection, actions, trans, attempt, redraw: () => this.#draw(), ...state };
    render(<Contents {...props} />, this.node);
  }
}

function Contents(props: Props) {
  const { connection, trans, problem } = props;
  const running = connection.clusters.filter((cluster) => cluster.summary.status !== "stopped");
  const ended = connection.clusters.filter((cluster) => !running.includes(cluster));
  const several = running.filter((cluster) => cluster.summary.strategies.length).length > 1;
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
      <Section name="clusters" title={trans.__("Clusters")} count={running.length} {...props}>
        <StartForm start={props.actions.start} {...props} />
        {!connection.connected && <p>{trans.__("connecting to the Jupyter server …")}</p>}
        {connection.connected && !connection.clusters.length && (
          <p>
            {trans.__(
              "None yet. They appear here by themselves: run wb.connect() in a notebook or a script.",
            )}
          </p>
        )}
        <KeptFocus>
          <ul>
            {running.map((cluster) => (
              <Cluster key={cluster.id} cluster={cluster} {...props} />
            ))}
          </ul>
          {ended.length > 0 && (
            <details class="wb-panel-ended">
              <summary>{trans._n("%1 has ended", "%1 have ended", ended.length, ended.length)}</summary>
              <ul>
                {ended.map((cluster) => (
                  <Cluster key={cluster.id} cluster={cluster} {...props} />
                ))}
              </ul>
            </details>
          )}
        </KeptFocus>
      </Section>
      <Section name="strategies" title={trans.__("Strategies")} count={strategies.length} {...props}>
        {!strategies.length && <p>{trans.__("None yet.")}</p>}
        <ul>
          {strategies.map(({ cluster, strategy, key }) => (
            <li key={key} class="wb-panel-line" title={`${strategy.label}, ${cluster.name}`}>
              <Status word={strategy.status} trans={trans} /> <span>{strategy.label}</span>
              <small>
                {trans._n("%1 replica", "%1 replicas", strategy.replicas, strategy.replicas)}
                {strategy.step >= 0 && `, ${trans.__("step %1", strategy.step)}`}
                {several && `, ${cluster.name}`}
              </small>
            </li>
          ))}
        </ul>
      </Section>
      <Section name="panes" title={trans.__("Panes")} count={OPENED.length} {...props}>
        <ul class="wb-panel-views">
          {OPENED.map((view) => (
            <li key={view}>
              <button type="button" onClick={() => props.actions.openPane(view, "")}>
                <Icon shapes={shapesOf(view)} />
                {titleOf(view, trans)}
              </button>
              <small title={purposeOf(view, trans)}>{purposeOf(view, trans)}</small>
            </li>
          ))}
        </ul>
      </Section>
      <Section name="layouts" title={trans.__("Layouts")} {...props}>
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
      </Section>
      <Runs {...props} />
    </>
  );
}

/** An icon of workbench's own. */
function Icon({ shapes }: { shapes: string }) {
  return <svg viewBox="0 0 16 16" aria-hidden dangerouslySetInnerHTML={{ __html: shapes }} />;
}

interface ActionProps {
  name: Parameters<typeof actionShapes>[0];
  label: string;
  cluster: ClusterInfo;
  act(): void;
}

/** A button on the line of a cluster. */
function Action({ name, label, cluster, act }: ActionProps) {
  return (
    <button type="button" title={label} aria-label={`${label}: ${cluster.name}`} onClick={act}>
      <Icon shapes={actionShapes(name)} />
    </button>
  );
}

function Cluster({ cluster, actions, trans, attempt }: Props & { cluster: ClusterInfo }) {
  const { summary } = cluster;
  const { pool } = summary;
  const over = summary.status === "stopped";
  const wrong = !over && isWrong(summary);
  const told = [
    wrong && summary.sentence,
    summary.text,
    !over && trans.__("Drag into a notebook to connect."),
  ];
  return (
    <li
      class="wb-cluster"
      data-id={cluster.id}
      onPointerDown={(event) => dragConnectCode(event, event.currentTarget, cluster)}
      title={told.filter(Boolean).join("\n")}
    >
      <div class="wb-panel-line">
        <Status word={summary.status} trans={trans} /> <b>{cluster.name}</b>
        {wrong && <span class="wb-panel-wrong">⚠</span>}
        <small>
          {wrong && `${summary.sentence} · `}
          {trans.__("%1 of %2 replicas", summary.replicas_live, summary.replicas)}
          {summary.hosts > 1 && `, ${trans.__("%1 hosts", summary.hosts)}`}
          {pool && `, ${described(pool, trans)}`}
          {cluster.workers_of && `, ${trans.__("on workers %1", cluster.workers_of)}`}
        </small>
        <span class="wb-panel-actions">
          {!over && (
            <Action
              name="insert"
              label={trans.__("Insert code")}
              cluster={cluster}
              act={() => actions.insert(cluster)}
            />
          )}
          {cluster.kind === "driver" && (
            <Action
              name="overview"
              label={trans.__("Overview")}
              cluster={cluster}
              act={() => actions.openPane("overview", cluster.id)}
            />
          )}
          <Action
            name={over ? "delete" : "stop"}
            label={over ? trans.__("Forget") : trans.__("Stop")}
            cluster={cluster}
            act={() => attempt(() => actions.stop(cluster))}
          />
        </span>
      </div>
      {pool && !over && isResizable(pool) && (
        <KeptFocus>
          {/* Reset when the numbers have changed, possibly from another page. */}
          <ScaleForm
            key={`${pool.minimum} ${pool.maximum}`}
            cluster={cluster}
            pool={pool}
            scale={actions.scale}
            trans={trans}
            attempt={attempt}
          />
        </KeptFocus>
      )}
    </li>
  );
}

function Runs(props: Props) {
  const { actions, trans, runs } = props;
  return (
    <Section name="recorded runs" title={trans.__("Recorded runs")} count={runs?.length ?? 0} {...props}>
      {runs?.length === 0 && <p>{trans.__('None yet. wb.record("runs/first.parquet") makes one.')}</p>}
      <ul>
        {runs?.slice(0, 20).map((run) => (
          <li key={run.path} class="wb-panel-line">
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
    </Section>
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
