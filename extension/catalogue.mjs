// Writes the catalogue of messages, locale/workbench.pot, of which translators make language packs for JupyterLab: every
// text of src/lab that goes through a translation bundle, and what the settings page shows. `--check` only compares.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import ts from "typescript";

const CATALOGUE = "locale/workbench.pot";
const SCHEMA = "schema/plugin.json";
const HEAD = `# Messages of workbench's JupyterLab extension. Written by \`npm run catalogue\`; do not edit.
msgid ""
msgstr ""
"Project-Id-Version: workbench\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
`;
/** Method of a bundle -> which of its arguments are the context, the text, and the text for several. */
const METHODS = {
  __: { text: 0 },
  gettext: { text: 0 },
  _n: { text: 0, many: 1 },
  ngettext: { text: 0, many: 1 },
  _p: { context: 0, text: 1 },
  pgettext: { context: 0, text: 1 },
  _np: { context: 0, text: 1, many: 2 },
  npgettext: { context: 0, text: 1, many: 2 },
};

const messages = new Map();

function add(file, message) {
  const key = JSON.stringify([message.context, message.text]);
  const known = messages.get(key) ?? { ...message, files: new Set() };
  messages.set(key, known);
  known.many ??= message.many;
  known.files.add(file);
}

function readCode(file) {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
  const look = (node) => {
    const callee =
      ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression) && node.expression;
    if (callee && Object.hasOwn(METHODS, callee.name.text)) {
      const said = Object.entries(METHODS[callee.name.text]).map(([part, index]) => {
        const given = node.arguments[index];
        if (given && ts.isStringLiteralLike(given)) return [part, given.text];
        const { line } = source.getLineAndCharacterOfPosition(node.getStart());
        throw new Error(`${file}:${line + 1}: only a text that stands there can be translated`);
      });
      add(file, Object.fromEntries(said));
    }
    ts.forEachChild(node, look);
  };
  look(source);
}

/** What JupyterLab's server translates of a schema, in the contexts that it looks in. */
function readSchema() {
  const schema = JSON.parse(readFileSync(SCHEMA, "utf8"));
  for (const name of ["title", "description"]) add(SCHEMA, { context: "schema", text: schema[name] });
  const look = (part) => {
    for (const [name, value] of Object.entries(part)) {
      if (["title", "description"].includes(name)) add(SCHEMA, { context: "settings", text: value });
      else if (value && typeof value === "object" && name !== "default") look(value);
    }
  };
  Object.values(schema.properties).forEach(look);
  add(SCHEMA, { context: "settings", text: schema["jupyter.lab.setting-icon-label"] });
}

for (const name of readdirSync("src/lab", { recursive: true }).sort())
  if (/\.tsx?$/.test(name)) readCode(`src/lab/${name}`);
readSchema();
const entries = [...messages.values()].map(({ context, text, many, files }) =>
  [
    `#: ${[...files].join(" ")}`,
    ...(context === undefined ? [] : [`msgctxt ${JSON.stringify(context)}`]),
    `msgid ${JSON.stringify(text)}`,
    ...(many === undefined
      ? ['msgstr ""']
      : [`msgid_plural ${JSON.stringify(many)}`, 'msgstr[0] ""', 'msgstr[1] ""']),
    "",
  ].join("\n"),
);
const catalogue = [HEAD, ...entries].join("\n");
if (!process.argv.includes("--check")) writeFileSync(CATALOGUE, catalogue);
else if (readFileSync(CATALOGUE, "utf8") !== catalogue) {
  throw new Error(`${CATALOGUE} is not of these sources: npm run catalogue`);
}
