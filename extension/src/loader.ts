// What each widget contains: a few lines that fetch the views from the one widget of the kernel that holds their code.
interface Model {
  get(name: string): unknown;
  send(content: unknown): void;
  on(event: string, handler: (content: { kind: string; text: string }) => void): void;
  off(event: string, handler: (content: never) => void): void;
  /** False if no kernel has the widget, as in a saved page. */
  comm_live?: boolean;
  widget_manager: { get_model(id: string): Promise<Model> };
}
interface Views {
  attach(model: Model, element: HTMLElement, code: (name: string) => Promise<string>): () => void;
  followTerms(code: Model): void;
}

const PLACE = Symbol.for("workbench.views");
const PATIENCE_MS = 30_000;
const NO_KERNEL =
  "no kernel has this view any more. In a notebook, run the cell again; a page that was saved makes no files";
const NO_ANSWER =
  "the kernel does not answer. If a cell runs, try again after it; if the kernel has ended, run the cell again";
const loaded: Map<string, Promise<Views>> = ((globalThis as Record<symbol, unknown>)[PLACE] ??=
  new Map()) as never;

async function load(text: string): Promise<Views> {
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return (await import(address)) as Views;
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** A module that the kernel sends only on request. */
function asked(code: Model, name: string): Promise<string> {
  if (code.comm_live === false) return Promise.reject(new Error(NO_KERNEL));
  return new Promise<string>((resolve, reject) => {
    const settle = (end: () => void) => {
      clearTimeout(timer);
      code.off("msg:custom", take);
      end();
    };
    const take = (content: { kind: string; text: string }) => {
      if (content.kind === name) settle(() => resolve(content.text));
    };
    const timer = setTimeout(() => settle(() => reject(new Error(NO_ANSWER))), PATIENCE_MS);
    code.on("msg:custom", take);
    try {
      code.send({ kind: name });
    } catch {
      settle(() => reject(new Error(NO_KERNEL)));
    }
  });
}

export default {
  async render({ model, el }: { model: Model; el: HTMLElement }) {
    const digest = String(model.get("digest"));
    const code = await model.widget_manager.get_model(String(model.get("code")).replace("IPY_MODEL_", ""));
    const text = String(code.get("text"));
    if (!loaded.has(digest)) loaded.set(digest, load(text));
    const views = await loaded.get(digest)!;
    views.followTerms(code);
    const codeOf = (name: string) => (name === "widget" ? Promise.resolve(text) : asked(code, name));
    const detach = views.attach(model, el, codeOf);
    try {
      model.send({ kind: "attached" }); // changes that the kernel sent before are lost, because nothing listened
    } catch {
      // The comm of a kernel that was restarted meanwhile: the view stays as it was drawn.
    }
    return detach;
  },
};
