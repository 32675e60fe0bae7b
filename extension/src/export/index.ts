// The module that makes files of views, and draws the pages that are among them. Menus load it when a person asks for a file; the page's state, which it has no copy of, is given to it.
import type { Collectives } from "../models";
import type { drawings } from "../parts/painting";
import type { ModuleName } from "./modules";
import { parquet } from "./parquet";
import { pictureOf, pngOf } from "./picture";
import { reportOf } from "./report";
import { drawReport } from "./report_page";
import type { Scope } from "./scope";
import { sheetOf } from "./sheet";
import { csv, ncclTests, ncclTestsJson, perfetto } from "./text";

export interface Shown extends Scope {
  /** The content of the page. */
  root: HTMLElement;
  /** How to draw its charts. */
  charts: typeof drawings;
  /** For reports, which can do everything that the page can. */
  code(): Promise<Record<ModuleName, string>>;
}

type Part = BlobPart | Promise<BlobPart>;
const json = (value: unknown) => `${JSON.stringify(value)}\n`;
const timed = ({ model }: Scope) => ("collectives" in model ? model.collectives : model) as Collectives;
const JSON_TYPE = "application/json";

/** File extension -> type and content. */
const FILES = {
  ".png": ["image/png", ({ root, charts }: Shown) => pngOf(pictureOf(root, charts))],
  ".svg": ["image/svg+xml", ({ root, charts }: Shown) => pictureOf(root, charts).markup],
  ".csv": ["text/csv", ({ view, model }: Shown) => csv(sheetOf(view, model))],
  ".parquet": ["application/vnd.apache.parquet", ({ view, model }: Shown) => parquet(sheetOf(view, model))],
  ".json": [JSON_TYPE, ({ whole }: Shown) => json(whole)],
  ".trace.json": [JSON_TYPE, (shown: Shown) => json(perfetto(timed(shown)))],
  ".txt": ["text/plain", (shown: Shown) => ncclTests(timed(shown).snapshot.table)],
  ".nccl.json": [JSON_TYPE, (shown: Shown) => json(ncclTestsJson(timed(shown).snapshot.table))],
  ".html": ["text/html", async ({ whole, title, code }: Shown) => reportOf(whole, title, await code())],
} satisfies Record<string, [type: string, make: (shown: Shown) => Part]>;

export type Ending = keyof typeof FILES;

/** A view as a file. */
export async function fileOf(ending: Ending, shown: Shown): Promise<Blob> {
  const [type, make] = FILES[ending];
  return new Blob([await make(shown)], { type });
}

/** Creates a file of a view, which the browser saves. */
export async function save(name: string, ending: Ending, shown: Shown): Promise<void> {
  const address = URL.createObjectURL(await fileOf(ending, shown));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // Not at once, because the browser may not have started reading.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// A module that stands in a page, as in a report, has the address of the page.
if (import.meta.url.split("#")[0] === document.URL.split("#")[0]) drawReport();
