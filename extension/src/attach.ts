// A view of a widget: draws its model, receives what the kernel pushes, and tells the kernel when nobody looks.
import { type Change, merge } from "./delta";
import type { Code } from "./export/modules";
import type { Collectives, Models } from "./models";
import { mount } from "./mount";
import { sayFieldTerms } from "./parts/terms";
import type { Request } from "./view";
import type { ViewName } from "./views";

/** The part of a widget's model that is used here; anywidget provides it. */
export interface WidgetModel {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  send(content: unknown): void;
  on(event: string, handler: (...parts: never[]) => void): void;
  off(event: string, handler: (...parts: never[]) => void): void;
}

/** The event that passes a view's newest model to the page; JupyterLab keeps it when the notebook is saved. */
export const NEWEST = "workbench:newest";
export interface Newest {
  view: ViewName;
  model: Models[ViewName];
}

/** What the kernel pushes. */
export type Message =
  | { kind: "model"; model: Models[ViewName] }
  | ({ kind: "collectives"; change: Change } & Omit<Collectives, "snapshot">)
  | { kind: "part"; part: Partial<Models[ViewName]> }
  | { kind: "problem"; text: string };

const GONE = "The kernel that drew this was restarted or has ended: run the cell again.";

/** Sends the kernel a message; false if that fails: the comm of a restarted kernel throws "Cannot send". */
function sent(model: WidgetModel, content: unknown): boolean {
  try {
    model.send(content);
    return true;
  } catch {
    return false;
  }
}

/** Shows the widget's view in an element, until the function that it returns is called; `code` as for `mount`. */
export function attach(model: WidgetModel, element: HTMLElement, code?: Code): () => void {
  const view = model.get("view") as ViewName;
  let newest = model.get("model") as Models[ViewName];
  const ask = (request: Request) => {
    if (!sent(model, request)) mounted.tell(GONE);
  };
  const mounted = mount(view, element, newest, {
    // A dashboard of a running job answers no requests, so its views offer none.
    ...(model.get("answers") === false ? {} : { ask }),
    code,
    hasNotebook: model.get("has_notebook") !== false,
    onVisible: (visible) => sent(model, { kind: "visible", visible }),
  });
  const take = (next: Models[ViewName]) => {
    newest = next;
    mounted.update(next);
    const detail: Newest = { view, model: next };
    element.dispatchEvent(new CustomEvent(NEWEST, { detail, bubbles: true, composed: true }));
  };
  const onModel = () => take(model.get("model") as Models[ViewName]);
  const onMessage = (message: Message) => {
    if (message.kind === "problem") {
      mounted.tell(message.text);
      return;
    }
    mounted.tell("");
    const next = newerBy(newest, message);
    // Kept in the widget's model, too, so that another view of it starts with the newest.
    if (next) model.set("model", next);
    else sent(model, { kind: "resync" });
  };
  model.on("change:model", onModel);
  model.on("msg:custom", onMessage);
  return () => {
    model.off("change:model", onModel);
    model.off("msg:custom", onMessage);
    sent(model, { kind: "visible", visible: false });
    mounted.unmount();
  };
}

const followed = new WeakSet();

/**
 * Lets the views of the page use the field's terms, or plain words, whenever a kernel requests it: `wb.field_terms`.
 */
export function followTerms(code: Pick<WidgetModel, "get" | "on">): void {
  if (followed.has(code)) return; // another view of the same kernel does not change this
  followed.add(code);
  const follow = () => {
    const said = code.get("field_terms");
    if (typeof said === "boolean") sayFieldTerms(said);
  };
  code.on("change:field_terms", follow);
  follow();
}

function newerBy(
  before: Models[ViewName],
  message: Exclude<Message, { kind: "problem" }>,
): Models[ViewName] | null {
  if (message.kind === "model") return message.model;
  if (message.kind === "part") return { ...before, ...message.part } as Models[ViewName];
  return changed(before as Collectives, message);
}

function changed(before: Collectives, message: Message & { kind: "collectives" }): Collectives | null {
  const snapshot = merge(before.snapshot, message.change);
  const { status, silent, sweeps, overview } = message;
  return snapshot && { status, silent, sweeps, overview, snapshot };
}
