// A page of one file that shows a view without a server: the twin of workbench/ui/report.py. And what runs in such a page.
import { count, counted } from "../format";
import type { Collectives } from "../models";
import { mount } from "../mount";
import { VIEWS, type ViewName } from "../views";
import { provideCode } from "./code";
import type { Shown } from "./scope";
import { sheetOf, type Row } from "./sheet";
import { escaped } from "./xml";

const PLACE = "workbench-views";
const STYLE = `
:root { color-scheme: light dark; }
body { max-width: 1400px; margin: 0 auto; padding: 16px; font: 14px/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 20px; }
table { border-collapse: collapse; font-family: monospace; }
td, th { padding: 1px 8px; text-align: right; white-space: pre; }
section { margin: 0 0 28px; overflow-x: auto; }
summary { cursor: pointer; opacity: .75; }`;

/** What the page has of each view: what is shown, and the title of the view that opens first in it. */
type Part = Shown & { open?: string };

/** The page, with the views' code in it; it opens on the view `first`. */
export function reportOf(shown: Shown, first: ViewName, code: string): string {
  const title = titleOf(shown, first);
  // Scripts without this word do not run; nobody who wrote a text that is shown could know it.
  const nonce = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))));
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'`;
  // JSON without "<" is nothing but JSON to a parser of HTML.
  const part: Part = { ...shown, open: VIEWS[first].title };
  const data = JSON.stringify([part]).replaceAll("<", "\\u003c");
  // In literals, the only places where our own code could have these, a backslash changes nothing.
  const script = code.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escaped(policy)}">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escaped(title)}</h1>
<p>${summaryOf(shown).map(escaped).join("<br>")}</p>
<main>
<section data-view="0">${tableOf(sheetOf(shown.view, shown.model))}</section>
</main>
<script type="application/json" id="${PLACE}">${data}</script>
<script type="module" nonce="${nonce}">${script}</script>
</body>
</html>
`;
}

/** Such as "Collective lanes: MirroredStrategy, run 7a3f". */
function titleOf({ model }: Shown, first: ViewName): string {
  const groups = timedOf(model)?.snapshot.groups ?? [];
  const names = new Set(groups.map(({ group }) => group));
  const runs = new Set(groups.map((group) => group.run_id));
  const run = runOf(model) || [...runs].join(", ");
  const job = [[...names].join(", "), run && `run ${run}`].filter(Boolean).join(", ");
  const title = VIEWS[first].title;
  return job ? `${title}: ${job}` : title;
}

function runOf(model: Shown["model"]): string {
  if (!("run" in model)) return "";
  return typeof model.run === "string" ? model.run : model.run.name;
}

/** A line on what this is, and one on each strategy. */
function summaryOf({ model }: Shown): string[] {
  const written = `recorded ${new Date().toLocaleString("sv")} by workbench`;
  const timed = timedOf(model);
  if (!timed) return [written];
  const { counters, groups } = timed.snapshot;
  return [
    `${written}: ${counted(counters.collectives, "collective")}, ${count(counters.failed)} failed`,
    ...groups.map(({ group, generation, n, lateness }) => {
      const again = generation > 0 ? `, generation ${generation}` : "";
      return `${group}${again}: ${counted(n, "replica")}; ${lateness.text || "no replica was late step after step"}`;
    }),
  ];
}

function timedOf(model: Shown["model"]): Collectives | null {
  if ("snapshot" in model) return model;
  return "collectives" in model ? model.collectives : null;
}

function tableOf(rows: readonly Row[]): string {
  if (!rows[0]) return "<p>nothing was recorded</p>";
  const names = Object.keys(rows[0]);
  const head = names.map((name) => `<th scope="col">${escaped(name)}</th>`).join("");
  const body = rows.map(
    (row) => `<tr>${names.map((name) => `<td>${escaped(String(row[name] ?? ""))}</td>`).join("")}</tr>`,
  );
  return `<table><thead><tr>${head}</tr></thead><tbody>${body.join("")}</tbody></table>`;
}

/** Draws the views of the page that this module is a part of; what was there for readers without scripts is folded away. */
export function drawReport(): void {
  const place = document.getElementById(PLACE);
  if (!place) return;
  const own = document.querySelector("script[type=module]")?.textContent ?? "";
  provideCode(() => Promise.resolve(own));
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
