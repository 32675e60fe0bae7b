// The bar above the views of the dashboard: cluster or run, status, pages, theme.
import { render } from "preact";
import { keep, kept } from "../kept";
import { sayWhereOthersAre } from "../overview/others";
import { StatusWord } from "../parts/status";
import { TabList } from "../parts/tabs";
import { sayKeptTerms, termsSwitch } from "../parts/terms_switch";
import { onConnectionLost, type PanelComponent, sendFirst } from "./bokeh";
import style from "./shell.css";

/** The state, as workbench/dashboards/shell.py sends it. */
export interface ShellState {
  /** What is shown, in a few words. */
  title: string;
  status: string;
  /** What a user can do to see something, or what went wrong. */
  note: string;
  clusters: { id: string; name: string; pid: number; status: string; text: string }[];
  /** The chosen cluster; "" shows the newest. */
  cluster: string;
  /** Whether to ask first which one to show. */
  choose: boolean;
  tabs: string[];
  tab: string;
}

const LOST =
  "✖ The dashboard does not answer any more: it has ended, or cannot be reached. This is the last that came; load the page again to see more.";
const THEMES = ["auto", "light", "dark"] as const;

/** Draws the bar, and again whenever its state changes. */
export function shell(component: PanelComponent, element: HTMLElement): void {
  const sheet = document.createElement("style");
  sheet.textContent = style;
  const root = document.createElement("header");
  root.className = "wb-shell";
  element.append(sheet, root);
  let state: ShellState | null = null;
  const draw = () => {
    if (!state) return;
    render(<Shell state={state} send={(content) => component.send_msg(content)} redraw={draw} />, root);
  };
  applyTheme(theme());
  sayKeptTerms();
  sayWhereOthersAre("The tabs above have the other views.");
  const take = (text: string) => {
    state = JSON.parse(text) as ShellState;
    draw();
  };
  onConnectionLost(() => {
    if (!state) return;
    const status = state.status === "live" ? "stale" : state.status;
    state = { ...state, status, note: LOST };
    draw();
  });
  component.on("msg:custom", take);
  component.on("remove", () => render(null, root));
  sendFirst(component, { kind: "ready" });
}

interface Props {
  state: ShellState;
  send(content: unknown): void;
  redraw(): void;
}

/** One function for all drawings, or each would make the switch anew. */
const addSwitch = (place: Element | null) => place?.replaceChildren(termsSwitch());

function Shell({ state, send, redraw }: Props) {
  return (
    <>
      <div class="wb-shell-bar">
        <h1>workbench</h1>
        {state.clusters.length > 1 && !state.choose ? (
          <select
            aria-label="Cluster"
            value={state.cluster}
            onChange={(event) => send({ kind: "cluster", id: event.currentTarget.value })}
          >
            <option value="">newest</option>
            {state.clusters.map((one) => (
              <option key={one.id} value={one.id}>{`${one.name} (${one.id}), ${one.status}`}</option>
            ))}
          </select>
        ) : null}
        <h2 class="wb-shell-title">{state.title}</h2>
        {state.status && <StatusWord word={state.status} />}
        <span class="wb-shell-space" />
        <span ref={addSwitch} />
        <button
          type="button"
          onClick={() => {
            keep("theme", applyTheme(next(theme())));
            redraw();
          }}
        >{`Theme: ${theme()}`}</button>
      </div>
      {state.choose && <Choice state={state} send={send} />}
      {state.tabs.length > 1 && (
        <TabList
          class="wb-shell-tabs"
          label="Views"
          tabs={state.tabs.map((name) => ({ name }))}
          chosen={state.tab}
          onChoose={(name) => send({ kind: "tab", name })}
        />
      )}
      <p role="status" class="wb-shell-note">
        {state.note}
      </p>
    </>
  );
}

function Choice({ state, send }: Pick<Props, "state" | "send">) {
  return (
    <ul class="wb-shell-choice" aria-label="Clusters">
      {state.clusters.map((one) => (
        <li key={one.id}>
          <button type="button" onClick={() => send({ kind: "cluster", id: one.id })}>
            <b>{one.name || one.id}</b> <StatusWord word={one.status} />
            <span>{one.text}</span>
            <span>{`process ${one.pid} · ${one.id}`}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

type Theme = (typeof THEMES)[number];

/** The choice on this page, or an earlier one in this browser; "auto" follows the browser's setting. */
function theme(): Theme {
  const chosen = document.documentElement.dataset["theme"] ?? kept("theme");
  return THEMES.find((one) => one === chosen) ?? "auto";
}

function next(chosen: Theme): Theme {
  return THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length]!;
}

/** The page's style sheet has the colours; views notice the attribute and redraw. */
function applyTheme(chosen: Theme): Theme {
  document.documentElement.dataset["theme"] = chosen;
  return chosen;
}
