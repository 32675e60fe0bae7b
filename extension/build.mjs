// Bundles the views, for notebook outputs, JupyterLab and dashboards. For outputs: one ES module with the style sheet inside, and a small one that
// loads it. What only a dashboard needs is a module of its own, so that notebooks do not carry it.
import { build } from "esbuild";
import { buildLab, styles } from "./lab.mjs";

await build({
  entryPoints: { widget: "src/widget.ts", loader: "src/loader.ts", shell: "src/dashboard/shell.tsx" },
  outdir: "../workbench/static",
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  charset: "utf8",
  plugins: [styles],
  logLevel: "warning",
});
await buildLab();
