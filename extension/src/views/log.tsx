// The statement about the run, and what happened beside the collectives: alerts, and what replicas printed; filtered by
// kind and by the selected replica.
import { useRef, useState } from "preact/hooks";
import { SeveritySign } from "../parts/icons";
import { VerdictCard } from "../parts/verdict";
import { Head } from "../parts/head";
import { type Open, useOpening } from "../parts/opening";
import { Brushed, isIn, stepsOf, useStill } from "../parts/steps";
import { named, numeric, replicaOf, selecting, Table, type Column } from "../parts/table";
import { count, counted, NOTHING } from "../format";
import type { Collectives, EventItem, GroupView } from "../models";
import type { Context, View, ViewName } from "../view";
import { DROPPED_EVENTS } from "./collective_table";
import { Button } from "../parts/small";

const FILTERS: { name: string; keeps(event: EventItem): boolean }[] = [
  { name: "All", keeps: () => true },
  { name: "Alerts", keeps: (event) => event.kind === "alert" || event.severity !== "info" },
  { name: "Output", keeps: (event) => event.kind === "log" },
  { name: "Lifecycle", keeps: (event) => event.kind === "lifecycle" },
];

/** The view that explains an alert, by the alert's name. */
const EVIDENCE: Partial<Record<string, ViewName>> = {
  nan: "values",
  inf: "values",
  copies_differ: "values",
  mismatch: "lanes",
  timeout: "lanes",
  replica_lost: "topology",
  worker_lost: "topology",
};

export const log: View<Collectives> = {
  title: "Alerts and log",
  draw({ model, context }) {
    return <Log model={model} context={context} />;
  },
};

function Log({ model: newest, context }: { model: Collectives; context: Context }) {
  const [filter, setFilter] = useState(0);
  const root = useRef<HTMLDivElement>(null);
  const [open, said] = useOpening(root);
  const { verdict, others = [] } = newest.overview;
  const axis = stepsOf(brushedGroup(newest, context), context);
  const model = useBrushed(newest, context, false);
  const { counters } = model.snapshot;
  const events = eventsOf(model, context);
  const chosen = context.selected.replica;
  const rows = events.filter(
    (event) =>
      FILTERS[filter]!.keeps(event) && (chosen === null || event.replica === chosen || event.replica < 0),
  );
  const alerts = events.filter((event) => event.kind === "alert").length;
  return (
    <div class="wb-part" ref={root}>
      <Head
        title="Alerts and log"
        facts={[
          alerts > 0 ? `▲ ${counted(alerts, "alert")}` : "no alerts",
          chosen !== null && `only replica ${chosen}`,
          counters.dropped_events > 0 && {
            text: `${count(counters.dropped_events)} older ones dropped`,
            help: DROPPED_EVENTS,
          },
        ]}
        status={model.status}
      >
        {FILTERS.map(({ name }, index) => (
          <Button key={name} aria-pressed={filter === index} onClick={() => setFilter(index)}>
            {name}
          </Button>
        ))}
        <Brushed steps={axis} />
        {chosen !== null && <Button onClick={() => context.select(chosen)}>Every replica</Button>}
      </Head>
      {verdict.severity !== "watching" && (
        <div class="wb-verdicts">
          {[verdict, ...others].map((one) => (
            <VerdictCard key={`${one.code} ${one.replica}`} verdict={one} open={open} here="log" />
          ))}
        </div>
      )}
      {said}
      <LogRows model={model} events={rows} context={context} open={open} />
    </div>
  );
}

/** The newest model; while steps are selected, the first one that has their figures; if `paused`, that of then. */
export function useBrushed(newest: Collectives, context: Context, paused: boolean): Collectives {
  return useStill(newest, paused || brushedGroup(newest, context) !== undefined, (model) => {
    const group = brushedGroup(model, context);
    const { range } = stepsOf(group, context);
    return paused || group?.steps.some(({ step }) => isIn(range, step)) === true;
  });
}

/** The replicas whose steps are selected. */
export function brushedGroup({ snapshot }: Collectives, context: Context): GroupView | undefined {
  return snapshot.groups.find((group) => stepsOf(group, context).range);
}

/** The events of the selected steps, or all; events outside of steps are placed by time. */
export function eventsOf(model: Collectives, context: Context): readonly EventItem[] {
  const { events, groups } = model.snapshot;
  const group = brushedGroup(model, context);
  if (!group) return events;
  const { first, last } = stepsOf(group, context).range!;
  const timeOf = (since: number) => group.steps.find(({ step }) => step >= since)?.begin_ns ?? Infinity;
  const [begin, end] = [timeOf(first), timeOf(last + 1)];
  // With several strategies, a step does not show which of them an event belongs to.
  return events.filter(({ step, t_ns }) =>
    step >= 0 && groups.length === 1 ? isIn({ first, last }, step) : t_ns >= begin && t_ns < end,
  );
}

interface RowsProps {
  model: Collectives;
  /** From the model. */
  events: readonly EventItem[];
  context: Context;
  open: Open;
}

/** The rows alone. */
export function LogRows({ model, events: rows, context, open }: RowsProps) {
  // An event knows its step, but not its replicas: with several strategies, that says too little.
  const { groups } = model.snapshot;
  const steps = stepsOf(groups.length === 1 ? groups[0]! : null, context);
  return (
    <Table
      label="Alerts and log"
      empty={model.status === "live" ? "nothing happened yet" : "nothing happened"}
      columns={columnsOf(model.snapshot.events[0]?.t_ns ?? 0, open)}
      rows={rows}
      keyOf={(event) => event.key}
      {...selecting(context, replicaOf)}
      isPointed={(event) => event.step >= 0 && event.step === steps.pointed}
      onPoint={(event) => steps.point(event ? event.step : null)}
      follow
    />
  );
}

/** The name of an event in words. */
function wordsOf(name: string): string {
  return name === "nan" ? "NaN" : name.replaceAll("_", " ");
}

function columnsOf(startNs: number, open: Open): Column<EventItem>[] {
  const or = (number: number) => (number < 0 ? NOTHING : String(number));
  return [
    {
      title: "s",
      rank: 3,
      help: "seconds since the first line",
      text: (event) => ((event.t_ns - startNs) / 1e9).toFixed(3),
      order: (event) => event.t_ns,
    },
    {
      title: "what",
      help: "what has happened",
      left: true,
      least: 128,
      text: ({ name }) => wordsOf(name),
      show: ({ kind, name, severity }) => {
        const view = kind === "alert" && Object.hasOwn(EVIDENCE, name) && EVIDENCE[name];
        return (
          <span class="wb-what" data-severity={severity}>
            {severity !== "info" && <SeveritySign severity={severity} />}
            {view ? (
              <Button class="wb-link" tabIndex={-1} onClick={() => open(view)}>
                {wordsOf(name)}
              </Button>
            ) : (
              wordsOf(name)
            )}
          </span>
        );
      },
    },
    numeric("replica", (event) => event.replica, or),
    named("host", (event) => event.host || NOTHING, { rank: 2 }),
    numeric("step", (event) => event.step, or),
    named("message", (event) => event.message, { least: 84 }),
    named("line", (event) => event.site || NOTHING, { term: "call site", rank: 1, least: 64 }),
  ];
}
