// Builds the JupyterLab extension: the plugin in a container that JupyterLab can load, and what it reads beside that.
import { build, transform } from "esbuild";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const out = "../workbench/labextension";
const distribution = "replica-workbench"; // as in pyproject.toml
const { name, version, description, license } = JSON.parse(readFileSync("package.json", "utf8"));

/** Style sheets as texts, without the white space. */
export const styles = {
  name: "styles",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, "utf8"), { loader: "css", minify: true });
      // Of what variables hold it leaves the white space.
      return { contents: code.replace(/(--[\w-]+:|,) /g, "$1"), loader: "text" };
    });
  },
};

/** How everything is built. Elements are calls of what `src/jsx.ts` has: a name that no view uses, or it would hide it. */
export const settings = {
  bundle: true,
  target: "es2022",
  minify: true,
  legalComments: "none",
  plugins: [styles],
  logLevel: "warning",
  inject: ["src/jsx.ts"],
  tsconfigRaw: {
    compilerOptions: { jsx: "react", jsxFactory: "createElement", jsxFragmentFactory: "Fragment" },
  },
};

export async function buildLab() {
  // JupyterLab's packages are asked for at run time; preact and the views come along.
  const external = ["@jupyterlab/*", "@lumino/*"];
  const done = await build({
    ...settings,
    entryPoints: ["src/lab/index.ts"],
    format: "cjs",
    external,
    metafile: true,
    write: false,
  });
  const imports = Object.values(done.metafile.outputs).flatMap((output) => output.imports);
  const shared = [...new Set(imports.filter((one) => one.external).map((one) => one.path))].sort();
  // Not as a replacement string, in which "$&" would mean something.
  const entry = readFileSync("src/lab/container.js", "utf8")
    .replace("WORKBENCH_NAME", () => name)
    .replace("WORKBENCH_SHARED", () => JSON.stringify(shared))
    .replace("WORKBENCH_BUNDLE;", () => done.outputFiles[0].text);
  const load = `static/remoteEntry.${createHash("sha256").update(entry).digest("hex").slice(0, 12)}.js`;

  rmSync(out, { recursive: true, force: true });
  mkdirSync(`${out}/static`, { recursive: true });
  mkdirSync(`${out}/schemas/${name}`, { recursive: true });
  writeFileSync(`${out}/${load}`, entry);
  for (const file of ["widget.js", "exports.js"])
    // for exports, and for reports that stand alone
    copyFileSync(`../workbench/static/${file}`, `${out}/static/${file}`);
  const jupyterlab = { extension: true, _build: { load, extension: "./extension" } };
  const about = JSON.stringify({ name, version, description, license, jupyterlab }, null, 2);
  writeFileSync(`${out}/package.json`, `${about}\n`);
  writeFileSync(`${out}/schemas/${name}/package.json.orig`, `${about}\n`);
  copyFileSync("schema/plugin.json", `${out}/schemas/${name}/plugin.json`);
  const install = {
    packageManager: "python",
    packageName: distribution,
    uninstallInstructions: `pip uninstall ${distribution}`,
  };
  writeFileSync(`${out}/install.json`, `${JSON.stringify(install, null, 2)}\n`);
}
