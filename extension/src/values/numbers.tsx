// The numbers of replicas: a ring or a dot each, outliers by name, and their history step by step.
import { figure, joined, known, meanOf, runsOf } from "../format";
import type { InspectedValue, Quantiles, ReplicaSpread, Summary } from "../models";
import { Course } from "../overview/loss";
import { Dots, type DotsRow, MOST_RINGS } from "../parts/dots";
import { Quiet } from "../parts/small";
import { stepsOf } from "../parts/steps";
import { isLit } from "../selection";
import type { Context } from "../view";
import { arrayOf } from "./shown";

/** The strategy whose steps produced a value. */
export function axisOf({ run_id = "", group = "" }: InspectedValue) {
  return run_id ? { run_id, group } : null;
}

interface Props {
  value: InspectedValue;
  /** Of the value, or as it was while its steps are selected. */
  course: InspectedValue["course"];
  context: Context;
}

/**
 * For many replicas, how their figures compare; otherwise the numbers of the step that is pointed at, pinned or
 * inspected.
 */
export function Numbers({ spread, ...props }: Props & { spread: ReplicaSpread | null }) {
  const { value, course, context } = props;
  const { replicas } = value;
  const [rows, outliers, text] = spread ? manyOf(value, spread) : fewOf(props);
  return (
    <div class="wb-beside wb-stacked">
      <div>
        {rows.length > 0 && (
          <Dots
            label={`${replicas.length} replicas`}
            rows={rows}
            nameOf={(replica) => `replica ${replica}`}
            outliers={outliers}
            rings={replicas.length <= MOST_RINGS}
            isLit={(replica) => isLit(context.selected, replica)}
            onPick={context.select}
            heights={rows.length > 1 ? [84, 240] : [course ? 104 : 180, course ? 560 : 900]}
          />
        )}
        <Quiet>{joined(text)}</Quiet>
      </div>
      {course && <History {...{ value, course, context }} />}
    </div>
  );
}

type Drawn = [rows: DotsRow[], outliers: readonly number[], text: (string | false | undefined)[]];

function fewOf({ value, course, context }: Props): Drawn {
  const { replicas } = value;
  const { pointed, pinned } = stepsOf(axisOf(value), context);
  const column = course?.replicas.length ? course.steps.indexOf(pointed ?? pinned ?? -1) : -1;
  const step = column < 0 ? replicas[0]!.step : course!.steps[column]!;
  const values = replicas.map(({ replica, summary }) =>
    column < 0 ? (summary as Summary).mean : (course!.replicas[replica]?.[column] ?? null),
  );
  const finite = known(values);
  const middle = meanOf(finite);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const bad = values.flatMap((at, index) => (at === null ? [replicas[index]!.replica] : []));
  return [
    middle === null ? [] : [{ name: "value", values, low, middle, high, word: "mean" }],
    bad,
    [
      step >= 0 && `step ${step}`,
      middle === null ? "no replica has a finite number" : `spread ${figure(high - low)}`,
      bad.length > 0 && `✖ not finite: replica ${runsOf(bad)}`,
      middle !== null && bad.length > 0 && `the mean is of the other ${finite.length}`,
    ],
  ];
}

function manyOf({ replicas }: InspectedValue, { quantiles, outliers, rest }: ReplicaSpread): Drawn {
  const bad = outliers.filter((replica) => {
    const found = arrayOf(replicas[replica]!);
    return found && found.nan + found.inf > 0;
  });
  return [
    quantiles.map((row) => ({
      name: named(row),
      values: replicas.map((one) => arrayOf(one)?.[figureOf(row)] ?? null),
      low: row.p10,
      middle: row.median,
      high: row.p90,
      word: "median",
    })),
    outliers,
    [
      ...quantiles.map(
        (row) => `${named(row)} ${figure(row.median)}, of most ${figure(row.p10)} to ${figure(row.p90)}`,
      ),
      bad.length > 0 && `✖ not finite: replica ${runsOf(bad)}`,
      rest?.replace("… ", ""),
    ],
  ];
}

/** A figure of quantiles, in plain words. */
const named = ({ figure: of }: Quantiles) => (of === "std" ? "deviation" : of === "L2" ? "norm" : of);

/** The value in a summary for a figure of quantiles. */
const figureOf = ({ figure: of }: Quantiles) =>
  (of === "value" ? "mean" : of.toLowerCase()) as keyof Pick<Summary, "mean" | "l2">;

interface HistoryProps extends Props {
  course: NonNullable<InspectedValue["course"]>;
  word?: string;
}

/** The history of a value's number, step by step. */
export function History({ value, course, context, word = "mean" }: HistoryProps) {
  const { steps } = course;
  const rows = value.replicas.map(({ replica }) => ({ replica }));
  return (
    <div>
      <Course
        of={axisOf(value)}
        shown={{ first: steps[0]!, last: steps.at(-1)! }}
        {...{ steps, course, rows, context, word }}
        widest={Infinity}
      />
    </div>
  );
}
