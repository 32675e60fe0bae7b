// The menu "Export" in the head of a view: files of its content, created and saved by the browser alone.
import { useContext, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Ending } from "./index";
import { allCode, CodeSource, loadExports } from "./modules";
import { ExportScope, type Scope } from "./scope";
import { IconButton } from "../parts/icons";
import { drawings } from "../parts/painting";
import { Button, take } from "../parts/small";

type Format = readonly [name: string, ending: Ending];
const FORMATS: Format[] = [
  ["Picture (PNG)", ".png"],
  ["Picture (SVG)", ".svg"],
  ["Table (CSV)", ".csv"],
  ["Table (Parquet)", ".parquet"],
  ["Everything (JSON)", ".json"],
];
const TIMED: Format[] = [
  ["Trace (Perfetto)", ".trace.json"],
  ["Table (nccl-tests)", ".txt"],
  ["Table (nccl-tests JSON)", ".nccl.json"],
];
const REPORT: Format = ["Report (HTML)", ".html"];

/** What a view can be exported as. */
function formatsOf({ model }: Scope): Format[] {
  return [...FORMATS, ...("snapshot" in model || "collectives" in model ? TIMED : []), REPORT];
}

export function ExportMenu() {
  const scope = useContext(ExportScope);
  const code = useContext(CodeSource);
  const [open, setOpen] = useState(false);
  /** How the last export went; a failure stays visible. */
  const [said, setSaid] = useState({ text: "", failed: false });
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const menu = box.current?.querySelector<HTMLElement>("ul, .wb-unsaved");
    // Below the right end of its button, if there is room.
    const view = menu?.closest(".wb")?.getBoundingClientRect();
    if (view && menu!.getBoundingClientRect().left < view.left) menu!.dataset["side"] = "left";
    if (open) items(box.current)[0]?.focus();
  }, [open, said]);
  if (!scope) return null;

  const close = (focus: boolean) => {
    setOpen(false);
    setSaid((now) => (now.failed ? { ...now, failed: false } : now)); // the user has seen it
    if (focus) box.current?.querySelector<HTMLElement>("button")?.focus();
  };
  const keep = async (ending: Ending) => {
    close(true);
    const root = box.current?.closest<HTMLElement>(".wb-part") ?? box.current?.closest<HTMLElement>(".wb");
    if (!root) return;
    const name = scope.view + ending;
    setSaid({ text: `making ${name} …`, failed: false });
    try {
      const { save } = await loadExports(code);
      await save(name, ending, { ...scope, root, charts: drawings, code: () => allCode(code) });
      setSaid({ text: `${name} is saved`, failed: false });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      setSaid({ text: `${name} is not saved: ${why}`, failed: true });
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const all = items(box.current);
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at < 0 ? -1 : at - 1, Home: 0, End: -1 }[event.key];
    if (!open && event.key === "ArrowDown") setOpen(true);
    else if ((open || said.failed) && event.key === "Escape") close(true);
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
          {formatsOf(scope).map(([name, ending]) => (
            <li key={name} role="none">
              <Button role="menuitem" tabIndex={-1} onClick={() => void keep(ending)}>
                {name}
              </Button>
            </li>
          ))}
        </ul>
      )}
      <span class={said.failed && !open ? "wb-unsaved" : "wb-heard"} role="status">
        {said.text}
      </span>
    </span>
  );
}

function items(box: HTMLElement | null): HTMLElement[] {
  return [...(box?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
}
