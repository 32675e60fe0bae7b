// What stands above every view: its name, facts, status; and the switch between a chart and its table.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ExportMenu } from "../export/menu";
import { StatusWord } from "./status";
import { Button, Quiet } from "./small";
import { Verdict } from "./verdict";
import { useRoom } from "./width";

const ABOUT = "wb-facts-line";
const GAP = 10;
const LEAST_FACTS = 320;
const NARROW = 360;

/** What stands beside a title; of some, people can ask what it means: by pointer, key or finger. */
export type Fact = string | { text: string; help: string };

function FactText({ fact }: { fact: Fact }) {
  if (typeof fact === "string") return <Quiet>{fact}</Quiet>;
  return (
    <details class="wb-quiet wb-explained">
      <summary title={fact.help}>{fact.text}</summary>
      {fact.help}
    </details>
  );
}

interface HeadProps {
  title: string;
  facts?: (Fact | false | null | undefined)[];
  /** In one word; that something was measured, its figures say. */
  status?: string;
  children?: ComponentChildren;
}

/** Where there is no room, facts go below the row first; then, in a narrow view, the buttons wait behind a "…". */
export function Head({ title, facts = [], status, children }: HeadProps) {
  const root = useRef<HTMLDivElement>(null);
  const room = useRoom(root);
  const [needed, setNeeded] = useState(0); // by all but the facts
  const [open, setOpen] = useState(false);
  const isFolded = room > 0 && room < Math.min(needed, NARROW); // 0 where it is not laid out
  useLayoutEffect(() => {
    if (isFolded) return;
    const parts = [...root.current!.children] as HTMLElement[];
    setNeeded(parts.reduce((sum, part) => sum + (part.className === ABOUT ? 0 : part.offsetWidth + GAP), 0));
  });
  return (
    <div
      class="wb-head"
      ref={root}
      data-tight={isFolded ? "folded" : needed + LEAST_FACTS > room ? "yes" : "no"}
    >
      <h3>{title}</h3>
      <div class={ABOUT}>{facts.map((fact) => fact && <FactText fact={fact} />)}</div>
      {status && <StatusWord word={status} />}
      {isFolded && (
        <Button aria-label="More" aria-expanded={open} onClick={() => setOpen(!open)}>
          …
        </Button>
      )}
      {(!isFolded || open) && (
        <div class="wb-actions">
          {children}
          <ExportMenu />
        </div>
      )}
    </div>
  );
}

interface ChartProps extends HeadProps {
  /** What is to be said first. */
  verdict?: { sentence: string; advice: string };
  chart: ComponentChildren;
  table: ComponentChildren;
}

/** A chart with its table twin, one of them at a time. */
export function ChartOrTable({ chart, table, verdict, children, ...head }: ChartProps) {
  const [asTable, setAsTable] = useState(false);
  return (
    <div class="wb-part">
      <Head {...head}>
        {children}
        <Button aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          Table
        </Button>
      </Head>
      {verdict && <Verdict {...verdict} />}
      {asTable ? table : chart}
    </div>
  );
}
