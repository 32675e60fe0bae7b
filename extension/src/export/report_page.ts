// What runs in the page of a report: it lets the module of the views draw what the page has the data of.
import type { mount as Mount } from "../mount";
import { sayKeptTerms, termsSwitch } from "../parts/terms_switch";
import type { VIEWS, ViewName } from "../views";
import type { provideCode as ProvideCode } from "./modules";
import { EXPORTS, type Part, PLACE, VIEWS_HERE } from "./report_parts";

/** What the module of the views has for such a page. */
export interface PageViews {
  mount: typeof Mount;
  provideCode: typeof ProvideCode;
  VIEWS: typeof VIEWS;
}

/** Draws the views of the page that this module is a part of; what was there for readers without scripts is folded away. */
export function drawReport(): void {
  const place = document.getElementById(PLACE);
  const views = (globalThis as { [VIEWS_HERE]?: PageViews })[VIEWS_HERE];
  if (!place || !views) return;
  views.provideCode((name) => {
    const script =
      name === "widget" ? document.querySelector("script[type=module]") : document.getElementById(EXPORTS);
    return Promise.resolve(script?.textContent ?? "");
  });
  const above = document.createElement("p");
  document.querySelector("main")?.before(above);
  sayKeptTerms();
  above.append(termsSwitch());
  (JSON.parse(place.textContent) as (Part | null)[]).forEach((shown, index) => {
    const section = document.querySelector(`section[data-view="${index}"]`);
    if (!shown || !section || !Object.hasOwn(views.VIEWS, shown.view)) return;
    const folded = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "As a table";
    folded.append(summary, ...section.childNodes);
    const drawn = document.createElement("div");
    section.append(drawn, folded);
    views.mount<ViewName>(shown.view, drawn, shown.model, { saved: { open: shown.open } });
  });
}
