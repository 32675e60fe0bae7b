// Replica × time: what each computed, how late it was, how long it waited, and each collective that it took part in.
import { useState } from "preact/hooks";
import { opColour } from "../colours";
import { ChartOrTable } from "../parts/head";
import { Key } from "../parts/marks";
import {
  paintCursor,
  paintDotted,
  paintEnd,
  paintText,
  paintLabel,
  paintLine,
  type Cell,
  type Painting,
} from "../parts/painting";
import { Plane } from "../parts/plane";
import { Brushed, isIn, paintBand, stepsOf, useStill } from "../parts/steps";
import { named, numeric, Table, type Column } from "../parts/table";
import { groupText, wording } from "../parts/terms";
import { NOTHING, sizeText, timeText } from "../format";
import type { Collectives, GroupView, LaneItem } from "../models";
import { clamped, linear } from "../scale";
import { strengthOf } from "../selection";
import { paintPart, partsOfRow } from "../overview/lanes";
import { Swatch } from "../overview/module";
import { beginOf, type Timeline, timeline } from "../overview/pauses";
import { laneNames, laneTimes } from "../overview/rows";
import type { Context, View } from "../view";
import { PauseButton } from "../parts/icons";
import { Button } from "../parts/small";
import { NoMeeting } from "../parts/nothing";

const TOP = 4;
const BOTTOM = 22;
/** The height of a lane in a pane. */
const [LEAST, MOST] = [20, 48];

export const lanes: View<Collectives> = {
  title: "Lanes",
  draw({ model, context }) {
    const groups = model.snapshot.groups.filter((group) => group.items.length);
    if (!groups.length) {
      return <NoMeeting title="No collective was recorded yet" />;
    }
    return (
      <>
        {groups.map((group) => (
          <Lanes key={`${group.run_id}|${group.group}`} group={group} context={context} />
        ))}
      </>
    );
  },
};

function Lanes({ group, context }: { group: GroupView; context: Context }) {
  const [squeezed, setSqueezed] = useState(true);
  const [paused, setPaused] = useState(false);
  const axis = stepsOf(group, context);
  const shown = useStill(
    group,
    paused || axis.range !== null,
    ({ items }) => paused || items.some(({ step }) => isIn(axis.range, step)),
  );
  const pause = () => setPaused(!paused);

  const items = shown.items;
  const names = laneNames(shown);
  const margin = 28 + 7 * Math.max(0, ...names.map((name) => name.length));
  const time = timeline(shown, squeezed);
  const parts = shown.lanes.map(({ replica }, lane) => partsOfRow(shown, { replica, lane }, time));
  const chosen = axis.range ? items.filter(({ step }) => isIn(axis.range, step)) : [];
  const zoom = chosen.length
    ? (axis.range!.time ??
      ([Math.min(...chosen.map(beginOf)), Math.max(...chosen.map((one) => one.last_end_ns))] as const))
    : null;
  const scale = (width: number) => {
    const from = zoom ? time.toAxis(zoom[0]) : 0;
    const to = zoom ? time.toAxis(zoom[1]) : time.length;
    return linear([from, to], [margin, width - 6]);
  };

  const paint = (painting: Painting) => {
    const { canvas, width, palette, cursor, rowHeight: height } = painting;
    const x = scale(width);
    const at = (ns: number) => x(time.toAxis(ns));
    shown.lanes.forEach((lane, row) => {
      const y = TOP + row * height;
      canvas.globalAlpha = strengthOf(context.selected, lane.replica);
      const isLate = shown.lateness.stragglers.includes(lane.replica);
      paintLabel(
        painting,
        { label: names[row]!, replica: lane.replica },
        y + height / 2,
        isLate,
        margin - 20,
      );
      canvas.save();
      canvas.beginPath();
      canvas.rect(margin, 0, width - margin - 6, painting.height);
      canvas.clip();
      items.forEach((item, column) => {
        const isOk = item.state === "ok";
        for (const part of parts[row]![column]!) {
          const x = at(part.from);
          const isTalk = part.kind === "communicate";
          const box = { x, y: y + 3, width: Math.max(at(part.to) - x, isTalk ? 2 : 0), height: height - 6 };
          if (x + box.width < margin || x > width) continue;
          paintPart(painting, part, box, isTalk ? (isOk ? opColour(item.op) : palette.error) : undefined);
          if (isOk || !isTalk) continue;
          paintText(painting, palette.text, "✖", x + 1, y + height / 2);
        }
      });
      canvas.restore();
      canvas.globalAlpha = 1;
    });
    paintAxis(painting, { time, x, y: TOP + shown.lanes.length * height });
    const meant = items.filter(({ step }) => step === axis.pointed);
    if (meant.length) {
      const edge = (ns: number) => clamped(at(ns), margin, width - 6);
      paintBand(painting, {
        from: edge(Math.min(...meant.map(beginOf))),
        to: edge(Math.max(...meant.map((one) => one.last_end_ns))),
        foot: TOP + shown.lanes.length * height,
      });
    }
    const item = cursor && items[cursor.column];
    const bar = item && laneTimes(item, cursor.row);
    if (bar) {
      const left = Math.max(margin, at(bar.enter));
      paintCursor(painting, {
        x: left - 1,
        y: TOP + cursor.row * height + 2,
        width: Math.max(4, at(bar.end) - left) + 2,
        height: height - 5,
      });
    }
  };
  const at = (px: number, py: number, width: number, height: number): Cell | null => {
    const row = Math.floor((py - TOP) / height);
    if (px < margin) return null;
    const x = scale(width);
    let best: Cell | null = null;
    let least = 8; // pixels beside a bar that still count
    items.forEach((item, column) => {
      const bar = laneTimes(item, row);
      if (!bar) return;
      const distance = Math.max(x(time.toAxis(bar.enter)) - px, px - x(time.toAxis(bar.end)), 0);
      if (distance < least) [best, least] = [{ row, column }, distance];
    });
    return best;
  };
  const describe = ({ row, column }: Cell) => {
    const item = items[column]!;
    const bar = laneTimes(item, row);
    const what = `${names[row]!} · step ${item.step} ${wording("number", "seq")} ${item.seq} ${item.op} ${sizeText(item.size_bytes)}`;
    if (!bar) return `${what} · took no part`;
    const { wait, transfer } = figures(item, row);
    const state = item.state === "ok" ? "" : ` · ${item.state}`;
    return `${what}${state} · waited ${wait} · transfer ${transfer}${item.site && ` · ${item.site}`}`;
  };
  const ops = [...new Set(items.map((item) => item.op))].sort();
  const failed = items.filter((item) => item.state !== "ok").length;

  return (
    <ChartOrTable
      title="Lanes"
      facts={[
        groupText(shown.group, shown.n),
        `newest ${items.length} collectives`,
        shown.hidden_lanes > 0 && `the ${shown.lanes.length} latest of ${shown.n} replicas`,
        shown.lateness.text && `▶ ${shown.lateness.text}`,
        failed > 0 && `✖ ${failed} failed`,
        paused && "❚❚ paused",
      ]}
      chart={
        <>
          <Plane
            label={`${items.length} collectives of ${shown.lanes.length} replicas over time`}
            hint="one collective · drag: zoom, Escape: all · Space: pause"
            rows={shown.lanes.length}
            columns={items.length}
            height={TOP + BOTTOM}
            rowHeights={[LEAST, clamped(MOST - 2 * shown.lanes.length, LEAST + 2, 40), MOST]}
            paint={paint}
            at={at}
            steps={axis}
            stepOf={({ column }) => items[column]?.step}
            describe={describe}
            replicaOf={({ row }) => shown.lanes[row]!.replica}
            onDrag={(from, to, width) => {
              const [begin, end] = [from, to].map((px) => time.fromAxis(scale(width).invert(px)));
              const meant = items.filter((item) => beginOf(item) <= end! && item.last_end_ns >= begin!);
              if (meant.length) axis.brush(meant[0]!.step, meant.at(-1)!.step, [begin!, end!]);
            }}
            onKey={(key) => {
              if (key !== " ") return false;
              pause();
              return true;
            }}
          />
          <div class="wb-legend">
            {ops.map((op) => (
              <Key key={op} colour={opColour(op)} name={op} />
            ))}
            <Swatch kind="compute" name="compute" />
            <Swatch kind="late" name="late" />
            <Swatch kind="wait" name="wait for it" />
          </div>
        </>
      }
      table={<Twin group={shown} />}
    >
      <Brushed steps={axis} />
      <Button aria-pressed={squeezed} onClick={() => setSqueezed(!squeezed)}>
        Shorten pauses
      </Button>
      <PauseButton paused={paused} onClick={pause} />
    </ChartOrTable>
  );
}

interface Axis {
  time: Timeline;
  x: (axis: number) => number;
  y: number;
}

/** Scale bars, because shortened pauses leave no common origin; and a mark at each shortened pause. */
function paintAxis(painting: Painting, { time, x, y }: Axis): void {
  const { canvas, width, palette } = painting;
  const perPixel = 1 / Math.max(1e-12, x(1) - x(0)); // ns
  const nice = niceLength(perPixel * 90);
  const length = nice / perPixel;
  const right = width - 8;
  const left = right - length;
  paintLine(painting, palette.quiet, 1, [
    [left, y + 5],
    [left, y + 9],
    [right, y + 9],
    [right, y + 5],
  ]);
  paintEnd(painting, palette.quiet, timeText(nice / 1000), left - 5, y + 9);
  let last = -Infinity;
  for (const gap of time.breaks) {
    const at = x(gap.axis);
    if (at < 0 || at > width || at - last < 7) continue;
    last = at;
    canvas.globalAlpha = 0.5;
    paintDotted(painting, at, 0, y);
    canvas.globalAlpha = 1;
  }
}

function niceLength(ns: number): number {
  const power = 10 ** Math.floor(Math.log10(ns));
  return power * ([5, 2, 1].find((factor) => factor * power <= ns) ?? 1);
}

function figures(item: LaneItem, lane: number): { wait: string; transfer: string } {
  const enter = item.enter_ns[lane] ?? null;
  const end = item.end_ns[lane] ?? null;
  if (enter === null || end === null) return { wait: NOTHING, transfer: NOTHING };
  const ready = Math.max(enter, item.ready_ns);
  const wait = ready - enter;
  return {
    // A wait shorter than the clocks' precision says nothing.
    wait: wait > 0 && wait < item.err_ns ? `< ${timeText(item.err_ns / 1000)}` : timeText(wait / 1000),
    transfer: timeText(Math.max(0, end - ready) / 1000),
  };
}

interface Line {
  key: string;
  item: LaneItem;
  lane: number;
  label: string;
}

function Twin({ group }: { group: GroupView }) {
  const names = laneNames(group);
  const rows: Line[] = group.items.flatMap((item) =>
    group.lanes.flatMap((lane, index) =>
      item.enter_ns[index] == null
        ? []
        : [{ key: `${item.key}|${lane.replica}`, item, lane: index, label: names[index]! }],
    ),
  );
  const columns: Column<Line>[] = [
    numeric("step", ({ item }) => item.step, String, { rank: 2 }),
    numeric("number", ({ item }) => item.seq, String, {
      rank: 4,
      term: "seq",
      help: "among those of the run",
    }),
    named("operation", ({ item }) => item.op, { term: "op" }),
    numeric("size", ({ item }) => item.size_bytes, sizeText, { rank: 3 }),
    named("replica", ({ label }) => label, { least: 90 }),
    {
      title: "wait",
      help: "for the last replica",
      text: ({ item, lane }) => figures(item, lane).wait,
      order: ({ item, lane }) => item.ready_ns - (item.enter_ns[lane] ?? item.ready_ns),
    },
    {
      title: "transfer",
      help: "from the last one's arrival to its own end",
      text: ({ item, lane }) => figures(item, lane).transfer,
      order: ({ item, lane }) => (item.end_ns[lane] ?? 0) - item.ready_ns,
    },
    named("state", ({ item }) => item.state, { rank: 1 }),
    named("line", ({ item }) => item.site || NOTHING, { term: "call site", rank: 5, least: 104 }),
  ];
  return <Table label="Collectives by replica" columns={columns} rows={rows} keyOf={(row) => row.key} />;
}
