// A view in the dashboard: draws what workbench/dashboards/pane.py sends, as a widget's view does.
import type { attach, Message, WidgetModel } from "../attach";
import type { ModuleName } from "../export/modules";
import { OPEN } from "../view";
import { type PanelComponent, sendFirst } from "./bokeh";

type FromPage = Message | { kind: "note"; text: string };

interface What {
  view: string;
  /** Whether anyone answers the requests that users make in the view. */
  answers: boolean;
  /** Whether there are pages of other views that this one can open. */
  opens: boolean;
  /** The view's title while it has nothing to draw. */
  title?: string;
  /** The line of code that provides its data. */
  line?: string;
}

/** The interface of the views' module. It is loaded separately, so that notebooks do not contain this code. */
interface Views {
  attach: typeof attach;
}

/** The text of one of the modules, from the page. */
async function codeOf(name: ModuleName): Promise<string> {
  const answer = await fetch(new URL(`views/${name}.js`, document.baseURI));
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  return answer.text();
}

/** Shows a view in an element, as soon as its model comes, until Panel removes the component. */
export function pane(component: PanelComponent, element: HTMLElement, what: What, views: Views): void {
  const note = document.createElement("p");
  note.setAttribute("role", "status");
  note.textContent = "loading …";
  note.style.cssText =
    "margin: 0; padding: 10px; color: var(--jp-content-font-color2); font: 13px/1.45 var(--jp-ui-font-family)";
  element.classList.add("wb-one-status"); // the bar above shows it
  element.append(note);
  const host = (element.getRootNode() as ShadowRoot).host as HTMLElement | undefined;
  const column = host?.style.gridColumn ?? "";
  for (const one of [host, element]) if (one) fill(one);
  // An empty part needs no row of its own, nor a whole one.
  if (host && what.line) Object.assign(host.style, { alignSelf: "start", gridColumn: "auto" });
  if (what.opens) {
    element.addEventListener(OPEN, (event) => {
      event.preventDefault();
      component.send_msg({ kind: "open", view: (event as CustomEvent<{ view: string }>).detail.view });
    });
  }
  let shown: Shown | null = null;
  let detach = () => component.send_msg({ kind: "visible", visible: false });
  const take = (text: string) => {
    const message = JSON.parse(text) as FromPage;
    // Before drawing, so that the server may prepare the next model meanwhile.
    component.send_msg({ kind: "taken" });
    if (message.kind === "note") tell(note, message.text, what);
    else if (shown) shown.take(message);
    else if (message.kind === "problem") note.textContent = message.text;
    else if (message.kind === "model") {
      note.remove();
      if (host) Object.assign(host.style, { alignSelf: "", gridColumn: column });
      shown = new Shown(component, { ...what, has_notebook: false, model: message.model });
      detach = views.attach(shown, element, codeOf);
    }
  };
  component.on("msg:custom", take);
  component.on("remove", () => detach());
  sendFirst(component, { kind: "resync" });
}

/** Gives an element and its content the available height; Panel would make it as high as its content. */
function fill({ style }: HTMLElement): void {
  Object.assign(style, { display: "flex", flex: "1 0 auto", flexDirection: "column", height: "auto" });
}

/** Says what is missing, with the line of code that provides it separate, under the name of the data. */
function tell(note: HTMLElement, text: string, { title = "", line = "" }: What): void {
  const at = line ? text.indexOf(line) : -1;
  note.textContent = text;
  if (at < 0) return;
  const heading = document.createElement("strong");
  heading.textContent = title;
  heading.style.cssText = "display: block; margin-bottom: 4px; color: var(--jp-ui-font-color1)";
  const code = document.createElement("code");
  code.textContent = line;
  code.style.cssText = "font-family: var(--jp-code-font-family); color: var(--jp-ui-font-color1)";
  note.replaceChildren(heading, text.slice(0, at), code, text.slice(at + line.length));
}

/** What `attach` accepts as the model of a widget. */
class Shown implements WidgetModel {
  #component: PanelComponent;
  #values: Record<string, unknown>;
  #handlers = new Map<string, Set<(content: unknown) => void>>();

  constructor(component: PanelComponent, values: Record<string, unknown>) {
    this.#component = component;
    this.#values = values;
  }

  take(message: Message): void {
    this.#tell("msg:custom", message);
  }

  get(name: string): unknown {
    return this.#values[name];
  }

  set(name: string, value: unknown): void {
    this.#values[name] = value;
    this.#tell(`change:${name}`, value);
  }

  send(content: unknown): void {
    this.#component.send_msg(content);
  }

  on(event: string, handler: (...parts: never[]) => void): void {
    const handlers = this.#handlers.get(event) ?? new Set();
    this.#handlers.set(event, handlers.add(handler as (content: unknown) => void));
  }

  off(event: string, handler: (...parts: never[]) => void): void {
    this.#handlers.get(event)?.delete(handler as (content: unknown) => void);
  }

  #tell(event: string, content: unknown): void {
    for (const handler of [...(this.#handlers.get(event) ?? [])]) handler(content);
  }
}
