// Bundles the views, for notebook outputs, JupyterLab and dashboards. For outputs: one ES module with the style sheet inside, and a small one that
// loads it. What makes files of views, and what only a dashboard needs, are modules of their own, so that not every notebook carries them.
import { build } from "esbuild";
import { buildLab, settings } from "./lab.mjs";

// What only views tell each other, so that it can be short: no model has properties of these names, and of the page's own views use none.
const INNER =
  /^(context|help|term|order|least|rank|row|columns?|canvas|colour|palette|facts|keyOf|pointed|describe|heights|rowHeights?|is(Selected|Pointed|Lit)|on(Pick|Point|Drag)|(step|replica|name)Of|stepAt|paint|places|holders?|range|selected|areNumbers|actions|word|draw|chart|stage|reader|lookedAt|invert|toAxis|waitLine|cursor|noun|pressed|isOdd|foot|plain|empty|measures|hint|brush|follow|lane|usual|folded|filled|item|transfer|across|down)$/;
const modules = { ...settings, outdir: "../workbench/static", format: "esm", charset: "utf8" };
await build({ ...modules, entryPoints: { widget: "src/widget.ts" }, mangleProps: INNER });
await build({ ...modules, entryPoints: { dashboard: "src/dashboard/index.ts" } });
// These draw nothing.
await build({
  ...modules,
  entryPoints: { loader: "src/loader.ts", exports: "src/export/index.ts" },
  inject: [],
});
await buildLab();
