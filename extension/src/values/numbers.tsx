// A number per replica: a numbered ring for each on their axis, with the mean; and how they have gone, step by step.
import { useRef } from "preact/hooks";
import { replicaColour } from "../colours";
import { figure, joined, known, meanOf, runsOf } from "../format";
import type { InspectedValue, Summary } from "../models";
import { Course } from "../overview/loss";
import { Quiet } from "../parts/small";
import { stepsOf } from "../parts/steps";
import { useWidth } from "../parts/width";
import { clamped, linear, roundTicks } from "../scale";
import { isLit } from "../selection";
import type { Context } from "../view";

const RADIUS = 10;
const TOP = 22; // for the mean
const HIGH = 110; // as high as rings pile up
const FOOT = 24;

/** Whose steps made a value. */
export function axisOf({ run_id = "", group = "" }: InspectedValue) {
  return run_id ? { run_id, group } : null;
}

interface Props {
  value: InspectedValue;
  /** Of the value, or as it was while its steps are picked out. */
  course: InspectedValue["course"];
  context: Context;
}

/** The numbers of the step that is pointed at or pinned, else of the one that was inspected. */
export function Numbers({ value, course, context }: Props) {
  const { replicas } = value;
  const { pointed, pinned } = stepsOf(axisOf(value), context);
  const column = course?.replicas.length ? course.steps.indexOf(pointed ?? pinned ?? -1) : -1;
  const step = column < 0 ? replicas[0]!.step : course!.steps[column]!;
  const rings = replicas.map(({ replica, summary }) => ({
    replica,
    at: column < 0 ? (summary as Summary).mean : (course!.replicas[replica]?.[column] ?? null),
  }));
  return (
    <div class="wb-beside">
      <Rings rings={rings} step={step} context={context} />
      {course && <History {...{ value, course, context }} />}
    </div>
  );
}

interface HistoryProps extends Props {
  course: NonNullable<InspectedValue["course"]>;
  word?: string;
}

/** How a number of a value has gone, step by step. */
export function History({ value, course, context, word = "mean" }: HistoryProps) {
  const { steps } = course;
  return (
    <div>
      <Course
        of={axisOf(value)}
        shown={{ first: steps[0]!, last: steps.at(-1)! }}
        {...{ steps, course, context, word }}
        rows={value.replicas}
      />
    </div>
  );
}

interface RingsProps {
  rings: readonly { replica: number; at: number | null }[];
  step: number;
  context: Context;
}

function Rings({ rings, step, context }: RingsProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const finite = known(rings.map(({ at }) => at));
  const bad = rings.filter(({ at }) => at === null).map(({ replica }) => replica);
  const mean = meanOf(finite);
  const low = Math.min(...finite);
  const high = Math.max(...finite);
  const x = linear(low < high ? [low, high] : [low - 1, low + 1], [24, width - 24]);
  // Those that would cover each other lie above one another.
  const ends: number[] = [];
  const placed = rings
    .flatMap(({ replica, at }) => (at === null ? [] : [{ replica, x: x(at), level: 0 }]))
    .sort((one, other) => one.x - other.x)
    .map((ring) => {
      const free = ends.findIndex((end) => end <= ring.x);
      const level = free < 0 ? ends.length : free;
      ends[level] = ring.x + 2 * RADIUS;
      return { ...ring, level };
    });
  const rise = Math.min(2 * RADIUS + 1, HIGH / ends.length);
  const ground = TOP + 2 * RADIUS + (ends.length - 1) * rise;
  const text = joined([
    step >= 0 && `step ${step}`,
    mean === null ? "no replica has a finite number" : `spread ${figure(high - low)}`,
    bad.length > 0 && `✖ not finite: replica ${runsOf(bad)}`,
    mean !== null && bad.length > 0 && `the mean is of the other ${finite.length}`,
  ]);
  const each = rings.map(({ replica, at }) => at !== null && `replica ${replica}: ${figure(at)}`);
  return (
    <div>
      <div class="wb-chart" ref={box}>
        {mean !== null && (
          <svg
            role="img"
            text-anchor="middle"
            aria-label={joined([`mean ${figure(mean)}`, text, ...each])}
            width={width}
            height={ground + FOOT}
          >
            <path d={`M${x(mean)} ${TOP - 4}V${ground}`} stroke="currentColor" stroke-dasharray="2 3" />
            <text class="wb-strong" x={clamped(x(mean), 44, width - 44)} y="12">
              mean {figure(mean)}
            </text>
            <path d={`M0 ${ground}H${width}`} stroke="var(--wb-quiet)" />
            {(low < high ? roundTicks(low, high, width / 110) : [low]).map((tick) => (
              <text key={tick} x={x(tick)} y={ground + FOOT - 2}>
                {figure(tick)}
              </text>
            ))}
            {placed.map(({ replica, x, level }) => (
              <g
                key={replica}
                transform={`translate(${x} ${ground - level * rise})`}
                opacity={isLit(context.selected, replica) ? 1 : 0.35}
                onClick={() => context.select(replica)}
              >
                <circle
                  r={RADIUS - 1}
                  fill="var(--wb-ground)"
                  stroke={replicaColour(replica)}
                  stroke-width="2.5"
                />
                <text class="wb-strong" y="4">
                  {replica}
                </text>
              </g>
            ))}
          </svg>
        )}
      </div>
      <Quiet>{text}</Quiet>
    </div>
  );
}
