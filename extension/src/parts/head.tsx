// The head of every view: its name, facts and status, and the switch between a chart and its table.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ExportMenu } from "../export/menu";
import { Status } from "./status";
import { IconButton } from "./icons";
import { Button, Quiet } from "./small";
import { Verdict } from "./verdict";
import { sumOf } from "../format";
import { useRoom } from "./width";

const GAP = 10;
const LEAST_FACTS = 320;
const LEAST_REST = 140;
const DOTS = 32; // the width of the button that contains the others

/** The facts beside a title. Some have an explanation, shown by pointer, key or finger. */
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
  /** In one word; that it was measured is clear from its figures. */
  status?: string;
  children?: ComponentChildren;
}

interface Fitting {
  /** Whether facts are in the row. */
  facts: boolean;
  /** How many of the buttons are. */
  actions: number;
}

/** Without room, facts first move below the row; then the last buttons are hidden behind a "…". */
export function Head({ title, facts = [], status, children }: HeadProps) {
  const root = useRef<HTMLDivElement>(null);
  const { width: room } = useRoom(root);
  const [fitting, setFitting] = useState<Fitting>({ facts: true, actions: Infinity });
  const [open, setOpen] = useState(false);
  const measured = useRef("");
  const isFolded = fitting.actions < Infinity;
  const tight = isFolded ? (open ? "open" : "folded") : fitting.facts ? "no" : "yes";
  const actions = useRef<HTMLDivElement>(null);
  const show = (some: number) =>
    ([...actions.current!.children] as HTMLElement[]).forEach((one, index) => (one.hidden = index >= some));
  useLayoutEffect(() => {
    const buttons = actions.current!.querySelectorAll("button").length; // some of which have no text
    const content = `${room} ${buttons} ${root.current!.textContent}`;
    if (content !== measured.current) {
      measured.current = content;
      show(Infinity);
      root.current!.dataset["tight"] = "yes"; // with everything in its desired width
      const next = fit(root.current!, actions.current!, room);
      root.current!.dataset["tight"] = tight;
      if (next.facts !== fitting.facts || next.actions !== fitting.actions) setFitting(next);
    }
    show(open ? Infinity : fitting.actions);
  });
  const unfold = () => {
    setOpen(!open);
    const first = actions.current!.querySelector<HTMLElement>("[hidden]");
    show(Infinity);
    // The focus moves to the buttons that appear now, because they precede this one.
    if (!open) (first?.querySelector<HTMLElement>("button, select, input") ?? first)?.focus();
  };
  return (
    <div class="wb-head" ref={root} data-tight={tight}>
      <h3>{title}</h3>
      <div class="wb-facts-line">{facts.map((fact) => fact && <FactText fact={fact} />)}</div>
      {status && <Status word={status} />}
      <div class="wb-actions" ref={actions}>
        {children}
        <ExportMenu />
      </div>
      {isFolded && (
        <Button aria-label="More" aria-expanded={open} onClick={unfold}>
          …
        </Button>
      )}
    </div>
  );
}

/** What fits into a row in which nothing is hidden. */
function fit(row: HTMLElement, actions: HTMLElement, room: number): Fitting {
  const width = (element: Element | null) => (element ? (element as HTMLElement).offsetWidth + GAP : 0);
  if (!room) return { facts: true, actions: Infinity }; // it is not laid out
  const about = sumOf([...row.children[1]!.children], width);
  const rest = room - width(row.querySelector("h3")) - width(row.querySelector(":scope > .wb-state"));
  const buttons = [...actions.children].map(width);
  const needed = sumOf(buttons, (one) => one) - GAP;
  if (needed <= rest) return { facts: needed + Math.min(about, LEAST_FACTS) <= rest, actions: Infinity };
  let left = rest - DOTS;
  return { facts: false, actions: buttons.findIndex((one) => (left -= one) < 0) };
}

interface ChartProps extends HeadProps {
  /** The most important statement. */
  verdict?: { sentence: string; advice: string; children?: ComponentChildren };
  /** Without a good chart, it is only a table. */
  chart: ComponentChildren;
  table: ComponentChildren;
  /** What the table follows if there is room below the chart. */
  more?: ComponentChildren;
}

/** Shown only if the others leave much of their pane free. */
export function Rest({ children }: { children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  return (
    <div class="wb-rest" ref={box}>
      {useRoom(box).height >= LEAST_REST && children}
    </div>
  );
}

/** A chart with its table; without room for both, one of them at a time. */
export function ChartOrTable({ chart, table, more, verdict, children, ...head }: ChartProps) {
  const [asTable, setAsTable] = useState(false);
  return (
    <div class="wb-part">
      <Head {...head}>
        {children}
        {chart && (
          <IconButton name="table" label="Table" pressed={asTable} onClick={() => setAsTable(!asTable)} />
        )}
      </Head>
      {verdict && <Verdict {...verdict} />}
      {asTable || !chart ? (
        table
      ) : (
        <>
          {chart}
          <Rest>
            {more}
            {table}
          </Rest>
        </>
      )}
    </div>
  );
}
