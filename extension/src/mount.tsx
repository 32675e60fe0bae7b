// How a view gets into any kind of page: notebook output, JupyterLab pane, dashboard.
import { type ComponentChildren, render } from "preact";
import { type Code, CodeSource, codeOfPage } from "./export/modules";
import { Exportable } from "./export/scope";
import { FrameScheduler, REPAINT_MS } from "./frames";
import type { Models } from "./models";
import { hasFocus, HasNotebook } from "./parts/small";
import { pageSelection, type PointedStep, type Selection, type StepRange } from "./selection";
import { SavedPage, type Saved } from "./parts/status";
import { VIEWS, type ViewName } from "./views";
import type { Request, View } from "./view";
import style from "./style.css";

export interface Options {
  /** Unmounts when it aborts. */
  signal?: AbortSignal;
  /** Shared by views in which a replica is highlighted together; by default, the whole page. */
  selection?: Selection;
  /** Answers requests; undefined if nobody can. */
  ask?: (request: Request) => void;
  /** Its source of module texts; by default, the page's. */
  code?: Code | undefined;
  /** Called when it becomes visible, and when it is hidden. */
  onVisible?: (visible: boolean) => void;
  /** Forces "light" or "dark" where the page has no JupyterLab theme. */
  theme?: "light" | "dark";
  /** Whether there may be a notebook around it, into which code can be put; by default where it is not in a file. */
  hasNotebook?: boolean;
  /** For the page of a file that was saved. */
  saved?: Saved;
}

export interface Mounted<M> {
  /** Draws a newer model soon: at most ten times a second, the newest wins, nothing while hidden. */
  update(model: M): void;
  /** Shows above the view what went wrong; "" clears it. */
  tell(problem: string): void;
  /** Removes the view from the page. */
  unmount(): void;
}

/** Shows `model` in `element` with the view of that name, until it is unmounted. */
export function mount<K extends ViewName>(
  name: K,
  element: HTMLElement,
  model: Models[K],
  options: Options = {},
): Mounted<Models[K]> {
  const view = VIEWS[name] as View<Models[K]>;
  const selection = options.selection ?? pageSelection;
  const root = frame(name, element);

  let newest = model;
  let problem = "";
  const Draw = view.draw;
  const paint = () => {
    tone(root, options.theme);
    const context = {
      selected: selection.now,
      select: (replica: number) => selection.toggle(replica),
      point: (step: PointedStep | null) => selection.point(step),
      brush: (range: StepRange | null) => selection.brush(range),
      ask: options.ask,
    };
    const focused = hasFocus(root);
    render(
      <SavedPage.Provider value={options.saved ?? null}>
        {problem && (
          <p class="wb-alert" role="alert">
            {problem}
          </p>
        )}
        <CodeSource.Provider value={options.code ?? codeOfPage}>
          <HasNotebook.Provider value={options.hasNotebook ?? !options.saved}>
            <Exportable view={name} title={view.title} model={newest}>
              <Draw model={newest} context={context} />
            </Exportable>
          </HasNotebook.Provider>
        </CodeSource.Provider>
      </SavedPage.Provider>,
      root,
    );
    // The focused element may be gone, such as the button that fills a view. The view then gets the focus, because
    // nothing else in it would be expected.
    if (!focused || hasFocus(root)) return;
    root.tabIndex = -1;
    root.focus({ preventScroll: true });
  };
  const frames = new FrameScheduler(paint);
  const over = new AbortController();
  const ends = [
    () => over.abort(),
    selection.subscribe(() => frames.request(REPAINT_MS)), // answers users' actions at once
    whenThemeChanges(() => frames.request(REPAINT_MS)),
    whileVisible(root, (visible) => {
      frames.setVisible(visible);
      options.onVisible?.(visible);
    }),
    () => frames.stop(),
  ];
  const unmount = () => {
    for (const end of ends.splice(0)) end();
    render(null, root);
    root.remove();
  };
  options.signal?.addEventListener("abort", unmount, { signal: over.signal });
  try {
    paint();
  } catch (error) {
    unmount();
    throw error;
  }
  return {
    update(next) {
      newest = next;
      frames.request();
    },
    tell(text) {
      if (text === problem) return;
      problem = text;
      frames.request();
    },
    unmount,
  };
}

/** What stands in for a view without content, in its look but without a model. */
export function placeholder(name: ViewName, element: HTMLElement, content: ComponentChildren): () => void {
  const root = frame(name, element);
  tone(root);
  render(content, root);
  return () => {
    render(null, root);
    root.remove();
  };
}

function frame(name: ViewName, element: HTMLElement): HTMLElement {
  const root = document.createElement("div");
  root.className = `wb wb-${name.replaceAll("_", "-")}`;
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", VIEWS[name].title);
  addStyle(element);
  element.append(root);
  return root;
}

const DARK = "(prefers-color-scheme: dark)";

/** Tells the style sheet the theme where the page has none, and which of our colours fit the ground. */
function tone(root: HTMLElement, theme?: Options["theme"]): void {
  root.dataset["theme"] = theme ?? (matchMedia(DARK).matches ? "dark" : "light");
  root.dataset["tone"] = isDark(root) ? "dark" : "light";
}

/** Whether the ground is dark, for any reason: JupyterLab's theme, a dashboard's, or the browser's setting. */
function isDark(root: Element): boolean {
  const channels =
    getComputedStyle(root)
      .color.match(/[\d.]+/g)
      ?.map(Number) ?? [];
  const [red = 0, green = 0, blue = 0] = channels; // of the text, which never has the ground's own colour
  return 0.3 * red + 0.59 * green + 0.11 * blue > 128;
}

const styled = new WeakSet<Node>();

/** Adds the style sheet once to the document, or to the shadow tree that contains the element. */
function addStyle(element: HTMLElement): void {
  const tree = element.getRootNode();
  const home = tree instanceof ShadowRoot ? tree : element.ownerDocument;
  if (styled.has(home)) return;
  styled.add(home);
  const sheet = element.ownerDocument.createElement("style");
  sheet.textContent = style;
  (home instanceof ShadowRoot ? home : home.head).append(sheet);
}

/** JupyterLab sets its theme in attributes of the body; without them, the browser's setting counts. */
function whenThemeChanges(run: () => void): () => void {
  const observer = new MutationObserver(run);
  const attributeFilter = ["data-jp-theme-name", "data-jp-theme-light", "class", "style", "data-theme"];
  observer.observe(document.body, { attributeFilter });
  observer.observe(document.documentElement, { attributeFilter });
  const setting = matchMedia(DARK);
  setting.addEventListener("change", run);
  return () => {
    observer.disconnect();
    setting.removeEventListener("change", run);
  };
}

function whileVisible(element: Element, tell: (visible: boolean) => void): () => void {
  let onScreen = true;
  let told: boolean | null = null;
  const say = () => {
    const visible = onScreen && document.visibilityState !== "hidden";
    if (visible !== told) tell(visible);
    told = visible;
  };
  const observer = new IntersectionObserver((entries) => {
    onScreen = entries.at(-1)?.isIntersecting ?? true;
    say();
  });
  observer.observe(element);
  document.addEventListener("visibilitychange", say);
  return () => {
    observer.disconnect();
    document.removeEventListener("visibilitychange", say);
  };
}
