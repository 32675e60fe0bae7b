// What each widget brings along: a few lines that fetch the views from the one widget of the kernel that holds their code.
interface Model {
  get(name: string): unknown;
  send(content: unknown): void;
  widget_manager: { get_model(id: string): Promise<Model> };
}
interface Views {
  attach(model: Model, element: HTMLElement): () => void;
  provideCode(from: () => Promise<string>): void;
}

const PLACE = Symbol.for("workbench.views");
const loaded: Map<string, Promise<Views>> = ((globalThis as Record<symbol, unknown>)[PLACE] ??=
  new Map()) as never;

async function load(model: Model): Promise<Views> {
  const id = String(model.get("code")).replace("IPY_MODEL_", "");
  const code = await model.widget_manager.get_model(id);
  const text = String(code.get("text"));
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    const views = (await import(address)) as Views;
    views.provideCode(() => Promise.resolve(text));
    return views;
  } finally {
    URL.revokeObjectURL(address);
  }
}

export default {
  async render({ model, el }: { model: Model; el: HTMLElement }) {
    const digest = String(model.get("digest"));
    if (!loaded.has(digest)) loaded.set(digest, load(model));
    const detach = (await loaded.get(digest)!).attach(model, el);
    try {
      model.send({ kind: "attached" }); // changes that the kernel sent before are lost: nobody listened
    } catch {
      // The comm of a kernel that was restarted meanwhile: the view stays as it was drawn.
    }
    return detach;
  },
};
