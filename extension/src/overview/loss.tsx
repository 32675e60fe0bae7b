// A number that steps return, such as a loss: its mean over the replicas, and a dot for each.
import { capitalized, figure, joined, NOTHING, known } from "../format";
import type { GroupView, ResultCourse } from "../models";
import { type Cell, paintDot, paintLine, paintNewest, paintTicks, type Painting } from "../parts/painting";
import { Plane } from "../parts/plane";
import { paintBand, type Span, type Stepping, stepsOf } from "../parts/steps";
import { replicaColour } from "../colours";
import { linear, roundTicks } from "../scale";
import { strengthOf } from "../selection";
import type { Context } from "../view";
import { cellsOf, paintSteps, stepAt } from "./gutters";
import { Module } from "./module";
import type { Row } from "./rows";
import { Note } from "../parts/small";

const TOP = 8;
const BOTTOM = 22;
/** How high the course itself is: by itself, and in a pane. */
const [BODY, LEAST, MOST] = [104, 64, 480];

interface Props {
  group: GroupView;
  rows: readonly Row[];
  /** The steps that the lanes show. */
  shown: { first: number; last: number };
  context: Context;
}

export function Loss({ group, rows, shown, context }: Props) {
  const course = group.told.result;
  if (!course)
    return (
      <Module name="Loss" about="how the training goes">
        <Note>
          Its course appears here as soon as steps return it: <code>return {'{"loss": loss}'}</code>
        </Note>
      </Module>
    );
  const { name, function: of, replicas } = course;
  const about = `${name ? "" : `what ${of} returns: `}mean, and ${replicas.length ? "a dot per replica" : "10 to 90\u202f% of the replicas"}`;
  const legend =
    replicas.length <= 8 && replicas.map((_, replica) => <Dot key={replica} replica={replica} />);
  return (
    <Module
      name={capitalized(name) || "Result"}
      kind="loss"
      {...{ about, legend }}
      most={TOP + BOTTOM + MOST}
    >
      <Course {...{ of: group, steps: group.lateness.steps, course, rows, shown, context }} />
    </Module>
  );
}

function Dot({ replica }: { replica: number }) {
  return (
    <span class="wb-key">
      <i aria-hidden data-kind="replica" style={{ background: replicaColour(replica) }} />
      {replica}
    </span>
  );
}

interface CourseProps {
  /** The strategy whose axis of steps it uses. */
  of: Stepping | null;
  /** The steps of the axis. */
  steps: readonly number[];
  course: ResultCourse;
  rows: readonly Pick<Row, "replica">[];
  /** The steps that the lanes show; all of them without lanes beside it. */
  shown: Span;
  context: Context;
  /** What the line shows. */
  word?: string;
  /** The width of a step, if no chart above or below has to match. */
  widest?: number;
}

/** A number by step: a line, and a dot for each replica. */
export function Course({ of, steps, course, rows, shown, context, word = "mean", widest }: CourseProps) {
  const { replicas, mean, low, high } = course;
  // By column of the axis that all charts of steps share: number of the value, or -1.
  const at = steps.map((step) => course.steps.indexOf(step));
  const axis = stepsOf(of, context);
  const finite = known([mean, low, high, ...replicas].flat());
  const most = finite.length ? Math.max(...finite) : 0;
  const least = finite.length ? Math.min(...finite) : 0;
  const ground = least >= 0 && least < 0.6 * most ? 0 : least;
  const paint = (painting: Painting) => {
    const { canvas, width, palette } = painting;
    const { left, right, first, size } = cellsOf(steps.length, width, widest);
    const edge = left + (steps.length - first) * size;
    const foot = painting.height - BOTTOM;
    const y = linear([ground, most > ground ? most : ground + 1], [foot, TOP]);
    const x = (column: number) => left + (column - first + 0.5) * size;
    paintTicks(painting, roundTicks(ground, most, 3), y, { left, right: edge });
    const line = (values: readonly (number | null)[], colour: string, lineWidth: number) => {
      const places = at.map((index, column) => {
        const value = values[index] ?? null;
        return value === null || column < first ? null : ([x(column), y(value)] as const);
      });
      paintLine(painting, colour, lineWidth, places);
    };
    rows.forEach(({ replica }) => {
      canvas.fillStyle = palette.replica(replica) ?? palette.quiet;
      canvas.globalAlpha = strengthOf(context.selected, replica);
      for (let column = first; column < steps.length; column++) {
        const value = replicas[replica]?.[at[column]!] ?? null;
        if (value === null) continue;
        paintDot(painting, x(column), y(value), 2.3);
      }
    });
    canvas.globalAlpha = 1;
    line(low, palette.quiet, 1);
    line(high, palette.quiet, 1);
    line(mean, palette.text, 1.6);
    const last = mean.at(-1) ?? null;
    if (right)
      paintNewest(
        painting,
        last === null ? "not finite" : figure(last),
        word,
        Math.max(TOP + 6, y(last ?? ground)),
      );
    paintSteps(painting, {
      ...{ steps, first, size, left, shown },
      ...{ range: axis.range, top: TOP, foot },
    });
    const pointed = steps.indexOf(axis.pointed ?? -1);
    if (pointed >= first)
      paintBand(painting, { from: x(pointed) - size / 2, to: x(pointed) + size / 2, foot });
  };
  const describe = ({ column }: Cell) => {
    const text = (value: number | null | undefined) => (value == null ? "not finite" : figure(value));
    const index = at[column]!;
    if (index < 0) return `step ${steps[column]}: ${NOTHING}`;
    const each = replicas.length
      ? rows.map(({ replica }) => `${replica}: ${text(replicas[replica]?.[index])}`)
      : low.length > 0 && [`10 to 90\u202f%: ${text(low[index])} to ${text(high[index])}`];
    return joined([`step ${steps[column]}: ${word} ${text(mean[index])}`, each && each.join(", ")]);
  };
  return (
    <Plane
      label={`${course.name || capitalized(word)} in ${steps.length} steps`}
      hint="the values of a step"
      rows={1}
      columns={steps.length}
      height={TOP + BOTTOM}
      rowHeights={[LEAST, BODY, MOST]}
      paint={paint}
      at={(px, _, width) => {
        const { left, first, size } = cellsOf(steps.length, width, widest);
        const column = first + Math.floor((px - left) / size);
        return column < first ? null : { row: 0, column };
      }}
      steps={axis}
      stepOf={({ column }) => steps[column]}
      stepAt={(x, width) => stepAt(steps, x, width, widest)}
      describe={describe}
    />
  );
}
