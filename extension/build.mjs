// Bundles the views, for notebook outputs and for JupyterLab. For outputs: one ES module with the style sheet inside, and a small one that loads it.
import { build } from "esbuild";
import { buildLab, styles } from "./lab.mjs";

await build({
  entryPoints: { widget: "src/widget.ts", loader: "src/loader.ts" },
  outdir: "../workbench/static",
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  plugins: [styles],
  logLevel: "warning",
});
await buildLab();
