// The menu "Export" in the head of a view: files of what it shows, made and kept by the browser alone.
import { useContext, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Collectives } from "../models";
import { codeSource } from "./code";
import { parquet } from "./parquet";
import { pictureOf, pngOf } from "./picture";
import { reportOf } from "./report";
import { ExportScope, type Scope } from "./scope";
import { sheetOf } from "./sheet";
import { csv, ncclTests, ncclTestsJson, perfetto } from "./text";
import { IconButton } from "../parts/icons";
import { Button } from "../parts/small";
import { take } from "../parts/keys";

interface Format {
  name: string;
  /** Of the file, after the name of the view. */
  ending: string;
  type: string;
  make(scope: Scope, root: HTMLElement): BlobPart | Blob | Promise<BlobPart | Blob>;
}

const json = (value: unknown) => `${JSON.stringify(value)}\n`;
const timed = ({ model }: Scope) => ("collectives" in model ? model.collectives : model) as Collectives;
const JSON_TYPE = "application/json";

function format(name: string, ending: string, type: string, make: Format["make"]): Format {
  return { name, ending, type, make };
}

const FORMATS = [
  format("Picture (PNG)", ".png", "image/png", (_, root) => pngOf(pictureOf(root))),
  format("Picture (SVG)", ".svg", "image/svg+xml", (_, root) => pictureOf(root).markup),
  format("Table (CSV)", ".csv", "text/csv", ({ view, model }) => csv(sheetOf(view, model))),
  format("Table (Parquet)", ".parquet", "application/vnd.apache.parquet", ({ view, model }) =>
    parquet(sheetOf(view, model)),
  ),
  format("Everything (JSON)", ".json", JSON_TYPE, ({ whole }) => json(whole)),
];
const TIMED = [
  format("Trace (Perfetto)", ".trace.json", JSON_TYPE, (it) => json(perfetto(timed(it)))),
  format("Table (nccl-tests)", ".txt", "text/plain", (it) => ncclTests(timed(it).snapshot.table)),
  format("Table (nccl-tests JSON)", ".nccl.json", JSON_TYPE, (it) =>
    json(ncclTestsJson(timed(it).snapshot.table)),
  ),
];
const REPORT = format("Report (HTML)", ".html", "text/html", async ({ whole, title }) =>
  reportOf(whole, title, await codeSource()!()),
);

/** What a view can be exported as. */
function formatsOf(scope: Scope): Format[] {
  const isTimed = "snapshot" in scope.model || "collectives" in scope.model;
  return [...FORMATS, ...(isTimed ? TIMED : []), ...(codeSource() ? [REPORT] : [])];
}

export function ExportMenu() {
  const scope = useContext(ExportScope);
  const [open, setOpen] = useState(false);
  const [said, setSaid] = useState("");
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const menu = box.current?.querySelector<HTMLElement>("[role=menu]");
    if (!open || !menu) return;
    // Below the right end of its button, if there is room.
    const view = menu.closest(".wb")?.getBoundingClientRect();
    if (view && menu.getBoundingClientRect().left < view.left) menu.dataset["side"] = "left";
    items(box.current)[0]?.focus();
  }, [open]);
  if (!scope) return null;

  const close = (focus: boolean) => {
    setOpen(false);
    if (focus) box.current?.querySelector<HTMLElement>("button")?.focus();
  };
  const save = async (format: Format) => {
    close(true);
    const root = box.current?.closest<HTMLElement>(".wb-part") ?? box.current?.closest<HTMLElement>(".wb");
    if (!root) return;
    try {
      const made = await format.make(scope, root);
      download(
        made instanceof Blob ? made : new Blob([made], { type: format.type }),
        scope.view + format.ending,
      );
      setSaid(`${scope.view + format.ending} is saved`);
    } catch (error) {
      setSaid(`not saved: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const all = items(box.current);
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at < 0 ? -1 : at - 1, Home: 0, End: -1 }[event.key];
    if (!open && event.key === "ArrowDown") setOpen(true);
    else if (open && event.key === "Escape") close(true);
    else if (open && to !== undefined) all.at(to % all.length)?.focus();
    else return;
    take(event);
  };
  const onFocusOut = (event: FocusEvent) => {
    if (!box.current?.contains(event.relatedTarget as Node | null)) close(false);
  };
  return (
    <span class="wb-export" ref={box} onKeyDown={onKeyDown} onFocusOut={onFocusOut}>
      <IconButton
        name="export"
        label="Export"
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      />
      {open && (
        <ul role="menu" aria-label="Export">
          {formatsOf(scope).map((format) => (
            <li key={format.name} role="none">
              <Button role="menuitem" tabIndex={-1} onClick={() => void save(format)}>
                {format.name}
              </Button>
            </li>
          ))}
        </ul>
      )}
      <span class="wb-heard" role="status">
        {said}
      </span>
    </span>
  );
}

function items(box: HTMLElement | null): HTMLElement[] {
  return [...(box?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
}

function download(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // Not at once: the browser may still have to begin reading.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
