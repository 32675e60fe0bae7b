// What runs in the page of a report: it draws the views of which the page has the data.
import { render } from "preact";
import { mount } from "../mount";
import { sayKeptTerms, TermsSwitch } from "../parts/terms_switch";
import { VIEWS, type ViewName } from "../views";
import { provideCode } from "./modules";
import { EXPORTS, type Part, PLACE } from "./report_parts";

/** Draws the views of the page that this module is a part of; what was there for readers without scripts is folded away. */
export function drawReport(): void {
  const place = document.getElementById(PLACE);
  if (!place) return;
  provideCode((name) => {
    const script =
      name === "widget" ? document.querySelector("script[type=module]") : document.getElementById(EXPORTS);
    return Promise.resolve(script?.textContent ?? "");
  });
  const above = document.createElement("p");
  document.querySelector("main")?.before(above);
  sayKeptTerms();
  render(<TermsSwitch />, above);
  const views = JSON.parse(place.textContent) as (Part | null)[];
  views.forEach((shown, index) => {
    const section = document.querySelector(`section[data-view="${index}"]`);
    if (!shown || !section || !Object.hasOwn(VIEWS, shown.view)) return;
    const folded = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "As a table";
    folded.append(summary, ...section.childNodes);
    const drawn = document.createElement("div");
    section.append(drawn, folded);
    mount<ViewName>(shown.view, drawn, shown.model, { saved: { open: shown.open } });
  });
}
