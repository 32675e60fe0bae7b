// Bundles each test with what it tests and hands them to node's test runner.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";

const out = "lib/tests";
const tests = readdirSync("tests").filter((name) => /\.test\.tsx?$/.test(name));
rmSync(out, { recursive: true, force: true });
await build({
  entryPoints: tests.map((name) => `tests/${name}`),
  outdir: out,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  external: ["happy-dom"],
  loader: { ".css": "text" },
  logLevel: "warning",
});
const files = tests.map((name) => `${out}/${name.replace(/\.tsx?$/, ".js")}`);
process.exit(spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1);
