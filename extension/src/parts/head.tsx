// What stands above every view: its name, facts, status; and the switch between a chart and its table.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ExportMenu } from "../export/menu";
import { StatusWord } from "./status";
import { Button, Quiet } from "./small";

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

export function Head({ title, facts = [], status, children }: HeadProps) {
  return (
    <div class="wb-head">
      <h3>{title}</h3>
      {facts.map((fact) => fact && <FactText fact={fact} />)}
      {status && status !== "measured" && <StatusWord word={status} />}
      <div class="wb-actions">
        {children}
        <ExportMenu />
      </div>
    </div>
  );
}

interface ChartProps extends HeadProps {
  chart: ComponentChildren;
  table: ComponentChildren;
}

/** A chart with its table twin, one of them at a time. */
export function ChartOrTable({ chart, table, children, ...head }: ChartProps) {
  const [asTable, setAsTable] = useState(false);
  return (
    <div class="wb-part">
      <Head {...head}>
        {children}
        <Button aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          Table
        </Button>
      </Head>
      {asTable ? table : chart}
    </div>
  );
}
