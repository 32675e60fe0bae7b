// The text of a self-contained page that shows a view without a server: the twin of workbench/ui/report.py.
import { count, counted, joined, momentText } from "../format";
import type { Collectives } from "../models";
import type { ModuleName } from "./modules";
import { EXPORTS, type Part, PLACE } from "./report_parts";
import type { Shown } from "./scope";
import { sheetOf, type Row } from "./sheet";
import { escaped } from "./xml";

const STYLE = `
:root { color-scheme: light dark; }
body { max-width: 1400px; margin: 0 auto; padding: 16px; font: 14px/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 20px; }
table { border-collapse: collapse; font-family: monospace; }
td, th { padding: 1px 8px; text-align: right; white-space: pre; }
section { margin: 0 0 28px; overflow-x: auto; }
summary { cursor: pointer; opacity: .75; }`;

/** The page with all of its code; it opens the view with the title `first`. */
export function reportOf(shown: Shown, first: string, code: Record<ModuleName, string>): string {
  const title = titleOf(shown, first);
  // Scripts without this nonce do not run. Nobody who wrote a displayed text could have known it.
  const nonce = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))));
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'`;
  // An HTML parser takes JSON without "<" for nothing else.
  const part: Part = { ...shown, open: first };
  const data = JSON.stringify([part]).replaceAll("<", "\\u003c");
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
<script type="module" nonce="${nonce}">${inScript(code.widget)}</script>
<script type="module" nonce="${nonce}" id="${EXPORTS}">${inScript(code.exports)}</script>
</body>
</html>
`;
}

/**
 * Code in a form that a page may contain: only literals have these sequences, and there a backslash changes nothing.
 */
function inScript(code: string): string {
  return code.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
}

/** For example "Collective lanes: MirroredStrategy, run 7a3f". */
function titleOf({ model }: Shown, first: string): string {
  const groups = timedOf(model)?.snapshot.groups ?? [];
  const names = new Set(groups.map(({ group }) => group));
  const runs = new Set(groups.map((group) => group.run_id));
  const run = runOf(model) || [...runs].join(", ");
  const job = joined([...names, run && `run ${run}`], ", ");
  return job ? `${first}: ${job}` : first;
}

function runOf(model: Shown["model"]): string {
  if (!("run" in model)) return "";
  return typeof model.run === "string" ? model.run : model.run.name;
}

/** A line about this page, and one about each strategy. */
function summaryOf({ model }: Shown): string[] {
  const recorded = "notes" in model ? `recorded ${momentText(model.run.written)}, ` : "";
  const written = `${recorded}exported ${new Date().toLocaleString("sv")} by workbench`;
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
