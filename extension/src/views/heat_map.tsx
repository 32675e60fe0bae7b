// Replica × step: how late each came. A fixed row is a straggler, a column is a step that was slow for everybody.
import { paintLabel } from "../overview/gutters";
import { ChartOrTable } from "../parts/head";
import { paintCursor, type Cell, type Painting } from "../parts/painting";
import { Plane } from "../parts/plane";
import { Brushed, isIn, paintColumn, paintRange, stepsOf } from "../parts/steps";
import { useStill } from "../parts/still";
import { named, numeric, selecting, Table, type Column } from "../parts/table";
import { counted, NOTHING, runsOf, significant, timeText, known, meanOf, ascending, joined } from "../format";
import type { Collectives, GroupView } from "../models";
import { clamped } from "../scale";
import { isLit } from "../selection";
import type { Context, View } from "../view";
import { Note } from "../parts/small";

const ROW = 24;
const TOP = 16;
const BOTTOM = 18;
const LATE = "behind the first one";

export const heatMap: View<Collectives> = {
  title: "Lateness by replica and step",
  draw({ model, context }) {
    const groups = model.snapshot.groups.filter((group) => group.lateness.steps.length);
    if (!groups.length) {
      return <Note>no step in which several replicas met yet</Note>;
    }
    return (
      <>
        {groups.map((group) => (
          <Group key={`${group.run_id}|${group.group}`} group={group} context={context} />
        ))}
      </>
    );
  },
};

function Group({ group: newest, context }: { group: GroupView; context: Context }) {
  const axis = stepsOf(newest, context);
  const group = useStill(newest, axis.range !== null, ({ lateness }) =>
    lateness.steps.some((step) => isIn(axis.range, step)),
  );
  const { replicas, steps, late_us, stragglers, slow_steps, text } = group.lateness;
  const labels = new Map(group.lanes.map((lane) => [lane.replica, lane.label]));
  const label = (row: number) => labels.get(replicas[row]!) ?? `r${replicas[row]}`;
  const value = ({ row, column }: Cell) => late_us[row]?.[column] ?? null;
  const { peak, most } = scaleOf(late_us);
  const level = levels(group.lateness);
  const chosen = axis.range ? steps.filter((step) => isIn(axis.range, step)) : [];
  const margin = 40 + 6.6 * Math.max(...replicas.map((_, row) => label(row).length));
  const cellWidth = (width: number) => Math.min(ROW, (width - margin - 4) / steps.length);

  const paint = (painting: Painting) => {
    const { canvas, width, palette, cursor } = painting;
    const w = cellWidth(width);
    const gap = w > 5 ? 1 : 0;
    replicas.forEach((replica, row) => {
      const y = TOP + row * ROW;
      canvas.globalAlpha = isLit(context.selected, replica) ? 1 : 0.6;
      const colour = group.n > palette.replicas.length ? -1 : replica;
      const isLate = stragglers.includes(replica);
      paintLabel(painting, { label: (isLate ? "▶ " : "") + label(row), colour }, y + ROW / 2, isLate);
      canvas.globalAlpha = 1;
      steps.forEach((_, column) => {
        const late = value({ row, column });
        const x = margin + column * w;
        if (late === null) {
          canvas.fillStyle = palette.line;
          canvas.fillRect(x + w / 2 - 1, y + ROW / 2 - 1, 2, 2);
          return;
        }
        canvas.fillStyle = palette.lateness[level(late)]!;
        canvas.fillRect(x, y, w - gap, ROW - 1);
      });
      if (context.selected.replica === replica) {
        canvas.strokeStyle = palette.accent;
        canvas.lineWidth = 2;
        canvas.strokeRect(margin - 1, y - 1, w * steps.length + 1, ROW);
      }
    });
    const foot = TOP + replicas.length * ROW + BOTTOM / 2;
    canvas.fillStyle = palette.quiet;
    canvas.textAlign = "center";
    const every = Math.ceil(44 / w);
    steps.forEach((step, column) => {
      const x = margin + (column + 0.5) * w;
      if (slow_steps.includes(step)) canvas.fillText("▼", x, TOP / 2);
      if (column % every === 0) canvas.fillText(String(step), x, foot);
    });
    canvas.textAlign = "left";
    if (chosen.length) {
      const from = margin + steps.indexOf(chosen[0]!) * w;
      const right = margin + steps.length * w;
      const foot = TOP + replicas.length * ROW;
      paintRange(painting, { from, to: from + chosen.length * w, left: margin, right, top: TOP, foot });
    }
    const pointed = steps.indexOf(axis.pointed ?? -1);
    if (pointed >= 0)
      paintColumn(painting, {
        left: margin + pointed * w - 0.5,
        top: TOP - 2,
        width: w,
        height: replicas.length * ROW + 3,
      });
    if (cursor)
      paintCursor(painting, {
        x: margin + cursor.column * w,
        y: TOP + cursor.row * ROW,
        width: w - gap,
        height: ROW - 1,
      });
  };
  const describe = (cell: Cell) => {
    const late = value(cell);
    const step = steps[cell.column]!;
    const what = late === null ? "no record" : late === 0 ? "first to come" : `${timeText(late)} late`;
    const notes = [
      stragglers.includes(replicas[cell.row]!) && "late step after step",
      slow_steps.includes(step) && "a step slow for everybody",
    ];
    return joined([`${label(cell.row)} · step ${step}: ${what}`, ...notes]);
  };
  const at = (x: number, y: number, width: number) => ({
    row: Math.floor((y - TOP) / ROW),
    column: Math.floor((x - margin) / cellWidth(width)),
  });
  return (
    <ChartOrTable
      title="Lateness by replica and step"
      facts={[
        group.group,
        group.hidden_lanes > 0 && `the ${replicas.length} latest of ${group.n} replicas`,
        text && `▶ ${text}`,
        slow_steps.length > 0 && `▼ slow for everybody: step ${runsOf(slow_steps.slice(-8))}`,
      ]}
      chart={
        <>
          <Plane
            label={`Lateness of ${counted(replicas.length, "replica")} in ${counted(steps.length, "step")}`}
            hint="how late a replica was in a step"
            rows={replicas.length}
            columns={steps.length}
            height={TOP + replicas.length * ROW + BOTTOM}
            paint={paint}
            at={at}
            steps={axis}
            stepOf={({ column }) => steps[column]}
            stepAt={(x, width) =>
              steps[clamped(Math.floor((x - margin) / cellWidth(width)), 0, steps.length - 1)]!
            }
            describe={describe}
            replicaOf={({ row }) => replicas[row]!}
          />
          <Scale peak={peak} most={most} />
        </>
      }
      table={<Twin group={group} label={label} context={context} />}
    >
      <Brushed steps={axis} />
    </ChartOrTable>
  );
}

const LEVELS = 6;

/** Which of the colours a lateness has: the first, close to the ground, where the clocks cannot tell it from none. */
export function levels({ late_us, enough_us }: GroupView["lateness"]): (us: number) => number {
  const { peak } = scaleOf(late_us);
  return (us) =>
    us < enough_us ? 0 : 1 + Math.min(LEVELS - 2, Math.floor((LEVELS - 1) * Math.min(1, us / peak)));
}

/** The colours from on time to late. */
export function Levels() {
  return (
    <span class="wb-levels" aria-hidden>
      {Array.from({ length: LEVELS }, (_, level) => (
        <i key={level} style={{ background: `var(--wb-late-${level})` }} />
      ))}
    </span>
  );
}

/**
 * Where the colours end. A replica that is late in a tenth of the steps or more is seen as that; a step in which all
 * were slow once, such as the first, must not turn everything else dark.
 */
export function scaleOf(late: GroupView["lateness"]["late_us"]): { peak: number; most: number } {
  const rows = late.map((row) => ascending(known(row)));
  const usual = (row: number[]) =>
    row[row.length < 3 ? row.length - 1 : Math.floor(0.9 * (row.length - 1))] ?? 0;
  const most = Math.max(1e-9, ...rows.map((row) => row.at(-1) ?? 0));
  const peak = Math.max(...rows.map(usual), 0);
  return { peak: peak > 0 ? peak : most, most };
}

function Scale({ peak, most }: { peak: number; most: number }) {
  return (
    <div class="wb-legend">
      <span>on time</span>
      <Levels />
      <span>
        {most > peak ? `${timeText(peak)} or more late; at most ${timeText(most)}` : `${timeText(peak)} late`}
      </span>
      <span>· no record</span>
    </div>
  );
}

interface Line {
  replica: number;
  label: string;
  late: (number | null)[];
  mean: number | null;
}

function Twin({
  group,
  label,
  context,
}: {
  group: GroupView;
  label: (row: number) => string;
  context: Context;
}) {
  const { replicas, steps, late_us } = group.lateness;
  const rows: Line[] = replicas.map((replica, row) => {
    const late = late_us[row] ?? [];
    return { replica, label: label(row), late, mean: meanOf(known(late)) };
  });
  const columns: Column<Line>[] = [
    named("replica", (line) => line.label, { order: (line) => line.replica }),
    numeric("mean µs", (line) => line.mean, significant, { help: LATE }),
    ...steps.map((step, column) => ({
      title: `step ${step}`,
      help: LATE,
      text: (line: Line) => (line.late[column] == null ? NOTHING : significant(line.late[column])),
      order: (line: Line) => line.late[column] ?? -1,
    })),
  ];
  return (
    <Table
      label="Lateness in µs by replica and step"
      columns={columns}
      rows={rows}
      keyOf={(line) => String(line.replica)}
      {...selecting(context, (line: Line) => line.replica)}
    />
  );
}
