// The run at a glance: the most important statement, four figures, what each replica does, who comes last, and the
// loss.
import { useEffect, useRef, useState } from "preact/hooks";
import { ExportMenu } from "../export/menu";
import { counted, joined } from "../format";
import type { Collectives, EpochFacts, GroupView, Verdict } from "../models";
import { epochShare, Figures } from "../overview/figures";
import { endHint, Hint } from "../overview/hint";
import { Icon, IconButton, PauseButton } from "../parts/icons";
import { LaneStrip, lanesLegend, lanesMost } from "../overview/lanes";
import { LatenessCells, LatenessLegend, latenessMost } from "../overview/lateness";
import { Loss } from "../overview/loss";
import { Module } from "../overview/module";
import { newestSteps } from "../overview/pauses";
import { rowsOf } from "../overview/rows";
import { Twin } from "../overview/twin";
import { VerdictCard } from "../parts/verdict";
import { NoMeeting } from "../parts/nothing";
import { type Open, useOpening } from "../parts/opening";
import { Status } from "../parts/status";
import { Brushed, isIn, rangeText, stepsOf } from "../parts/steps";
import { groupText } from "../parts/terms";
import { useRoom } from "../parts/width";
import { clamped } from "../scale";
import { type Context, OPEN, type View, type ViewName } from "../view";
import { CollectiveRows, collectiveTable, unitOf } from "./collective_table";
import { heatMap } from "./heat_map";
import { lanes } from "./lanes";
import { eventsOf, log, LogRows, useBrushed } from "./log";
import { stuck } from "./stuck";
import { sweep } from "./sweep";

/** Views that can be shown in its place where nothing can open another one. */
const INSIDE: Partial<Record<ViewName, View<Collectives>>> = {
  collective_table: collectiveTable,
  heat_map: heatMap,
  lanes,
  log,
  stuck,
  sweep,
};
const STEP_PX = 96;
const BESIDE_PX = 210;
const MOST_STEPS = 16;
/** From this width on, two cards fit side by side; as in the style sheet. */
const WIDE_PX = 1180;
const MOST_LINES = 30;
const RECENT_MS = 2000;
const HELD_MS = 3000;

export const overview: View<Collectives> = {
  title: "Overview",
  draw({ model, context }) {
    return <Page model={model} context={context} />;
  },
};

function Page({ model, context }: { model: Collectives; context: Context }) {
  const root = useRef<HTMLDivElement>(null);
  const [paused, setPaused] = useState(false);
  const [asTable, setAsTable] = useState(false);
  const [inside, setInside] = useState<ViewName | null>(null);
  const shown = useBrushed(model, context, paused);
  const recent = useRecent(shown.snapshot.version);
  const { width: room } = useRoom(root);
  const about = shown.status === "stopped" ? { ...shown.overview, live: 0 } : shown.overview;
  const verdict = useHeld((paused ? about : model.overview).verdict); // what matters is shown in spite of a range
  const group = shown.snapshot.groups.find(
    (one) => one.run_id === about.run_id && one.group === about.group && one.steps.length > 0,
  );
  const [ask, said] = useOpening(root, (view) => {
    const has = Object.hasOwn(INSIDE, view);
    if (has) setInside(view);
    return has;
  });
  const open: Open = (view) => {
    endHint();
    ask(view);
  };
  /** Requested by what is shown inside. */
  const onOpen = (event: CustomEvent<{ view: ViewName }>) => {
    if (event.target === root.current) return;
    event.preventDefault();
    event.stopPropagation();
    open(event.detail.view);
  };
  const Other = inside && INSIDE[inside]?.draw;
  return (
    <div class="wb-canvas" ref={root} {...{ [`on${OPEN}`]: onOpen }}>
      <div class="wb-page wb-part">
        <div class="wb-title">
          {inside ? (
            <IconButton name="back" label="Back to the overview" onClick={() => setInside(null)} />
          ) : (
            <Icon name="overview" />
          )}
          <h3>{groupText(about.group) || "Overview"}</h3>
          <span class="wb-about">{factsOf(shown, group?.told.epoch)}</span>
          {group && <Brushed steps={stepsOf(group, context)} />}
          <Status word={shown.status} />
          {group && shown.status !== "replay" && shown.status !== "stopped" && (
            <PauseButton paused={paused} onClick={() => setPaused(!paused)} />
          )}
          <IconButton
            name="table"
            label="Table"
            pressed={asTable}
            onClick={() => {
              setAsTable(!asTable);
              setInside(null);
            }}
          />
          <ExportMenu />
        </div>
        {Other ? (
          <section class="wb-module">
            <Other model={shown} context={context} />
          </section>
        ) : !group ? (
          <NoMeeting title={verdict.severity === "error" ? verdict.sentence : "No step has run yet"} />
        ) : (
          <>
            {said}
            <div class="wb-pair">
              <VerdictCard verdict={verdict} open={open} />
              <Figures overview={about} group={group} steps={stepsOf(group, context)} open={open} />
            </div>
            {asTable ? (
              <Twin overview={about} group={group} rows={rowsOf(group)} />
            ) : (
              <Charts
                model={shown}
                group={group}
                room={room}
                now={shown.status === "live" && recent && !paused ? "now" : `step ${about.step}`}
                context={context}
                open={open}
              />
            )}
            <Hint />
          </>
        )}
      </div>
    </div>
  );
}

interface ChartsProps {
  model: Collectives;
  group: GroupView;
  room: number;
  now: string;
  context: Context;
  open: Open;
}

function Charts({ model, group, room, now, context, open }: ChartsProps) {
  const rows = rowsOf(group);
  const { range } = stepsOf(group, context);
  const most = clamped(Math.floor((room - BESIDE_PX) / STEP_PX), 3, MOST_STEPS);
  const chosen = range ? group.items.flatMap(({ step }) => (isIn(range, step) ? [step] : [])) : [];
  const steps = chosen.length ? { first: chosen[0]!, last: chosen.at(-1)! } : newestSteps(group, most);
  const { table, counters } = model.snapshot;
  const hidden = group.n - rows.filter(({ replica }) => replica >= 0).length;
  return (
    <>
      <div class="wb-charts">
        <Module
          name="Lanes"
          most={lanesMost(rows.length)}
          about={
            range && !chosen.length
              ? `collectives of ${rangeText(range)} are no longer kept: the newest`
              : hidden
                ? `the latest ${rows.length - 1} of ${group.n} replicas`
                : "what each replica does"
          }
          legend={lanesLegend}
          pane="lanes"
          open={open}
        >
          <LaneStrip
            group={group}
            rows={rows}
            steps={steps}
            now={range ? `step ${steps.last}` : now}
            context={context}
          />
        </Module>
        <div class="wb-pair">
          <Module
            name="Lateness"
            most={latenessMost(rows.length)}
            about="who comes last to a collective"
            legend={<LatenessLegend group={group} />}
            pane="heat_map"
            open={open}
          >
            <LatenessCells group={group} rows={rows} shown={steps} context={context} />
          </Module>
          <Loss group={group} rows={rows} shown={steps} context={context} />
        </div>
      </div>
      {room >= WIDE_PX && (
        <div class="wb-pair">
          <Module
            name="Collective timing"
            kind="collectives"
            about={`${counted(counters.collectives, "collective")}, times in ${unitOf(table).name}`}
            pane="collective_table"
            open={open}
          >
            <CollectiveRows table={table} context={context} />
          </Module>
          <Module name="Log" about="alerts, and what replicas printed" pane="log" open={open}>
            <LogRows
              model={model}
              events={eventsOf(model, context).slice(-MOST_LINES)}
              context={context}
              open={open}
            />
          </Module>
        </div>
      )}
    </>
  );
}

function factsOf(
  { overview: { replicas, hosts, step, more_groups } }: Collectives,
  epoch?: EpochFacts | null,
): string {
  if (!replicas) return "";
  const more = more_groups && `${more_groups} more ${more_groups > 1 ? "strategies" : "strategy"}`;
  const where = hosts > 0 ? ` on ${counted(hosts, "host")}` : "";
  return joined(
    [counted(replicas, "replica") + where, step >= 0 && `step ${step}`, epoch && epochShare(epoch), more],
    ", ",
  );
}

/** What is shown without delay: an error, and whatever is known after enough steps. */
function isUrgent(held: Verdict, newest: Verdict): boolean {
  return newest.severity === "error" || held.severity === "watching";
}

/** The verdict, which stays on the screen long enough to read. */
function useHeld(newest: Verdict): Verdict {
  const held = useRef({ verdict: newest, since: performance.now() });
  const { verdict, since } = held.current;
  if (verdict.code === newest.code && verdict.replica === newest.replica) held.current.verdict = newest;
  else if (isUrgent(verdict, newest) || performance.now() - since >= HELD_MS)
    held.current = { verdict: newest, since: performance.now() };
  const isBehind = held.current.verdict !== newest;
  const [, again] = useState(0);
  useEffect(() => {
    if (!isBehind) return undefined;
    const left = held.current.since + HELD_MS - performance.now();
    // Rounded up, because timers count whole milliseconds, and a timer that is early would be the last.
    const timer = setTimeout(() => again((count) => count + 1), Math.max(0, Math.ceil(left)));
    return () => clearTimeout(timer);
  }, [isBehind]);
  return held.current.verdict;
}

/** Whether something has come in the last seconds. */
function useRecent(version: number): boolean {
  const [old, setOld] = useState(-1);
  useEffect(() => {
    const timer = setTimeout(() => setOld(version), RECENT_MS);
    return () => clearTimeout(timer);
  }, [version]);
  return old !== version;
}
