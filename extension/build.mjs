// Bundles the views, for notebook outputs, JupyterLab and dashboards. For outputs: one ES module with the style sheet inside, and a small one that
// loads it. What only a dashboard needs is a module of its own, so that notebooks do not carry it.
import { build } from "esbuild";
import { buildLab, settings } from "./lab.mjs";

/** Names of our own: shorter ones are found for them. What models, the page or another module call something is not among them. */
const OWN = [
  ...["brush", "canvas", "chart", "colour", "column", "columns", "context", "cursor", "describe"],
  ...["draw", "empty", "facts", "follow", "foot", "fromAxis", "help", "hint", "holders"],
  ...["isPointed", "isSelected", "keyOf", "lookedAt", "noun", "least", "onDrag", "onKey", "onPick"],
  ...["onPoint", "order", "paint", "palette", "pinned", "rates", "selected", "pointed", "range"],
  ...["rank", "replicaOf", "row", "sign", "stepAt", "stepOf", "term", "toAxis", "within"],
];
const modules = { ...settings, outdir: "../workbench/static", format: "esm", charset: "utf8" };
await build({
  ...modules,
  mangleProps: new RegExp(`^(${OWN.join("|")})$`),
  entryPoints: { widget: "src/widget.ts", dashboard: "src/dashboard/index.ts" },
});
await build({ ...modules, entryPoints: { loader: "src/loader.ts" }, inject: [] }); // it draws nothing
await buildLab();
