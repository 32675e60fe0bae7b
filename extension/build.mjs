// Bundles the views for notebook outputs: one ES module, one style sheet inside it, nothing fetched.
import { build } from "esbuild";

await build({
  entryPoints: { widget: "src/widget.ts" },
  outdir: "../workbench/static",
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  loader: { ".css": "text" },
  logLevel: "warning",
});
