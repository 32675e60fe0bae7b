// Four figures with their history over the newest steps.
import { replicaColour } from "../colours";
import { ascending, NOTHING, count, joined, percent, significant, sumOf, wholePercent } from "../format";
import type { EpochFacts, GroupView, Overview, StepTiming } from "../models";
import { isIn, rangeText } from "../parts/steps";
import type { StepRange, Steps } from "../selection";
import type { ViewName } from "../view";
import { Button } from "../parts/small";

interface Props {
  overview: Overview;
  group: GroupView;
  steps: Steps;
  open(view: ViewName): void;
}

export function Figures({ overview, group, steps, open }: Props) {
  const { live, replicas, lost } = overview;
  const { range } = steps;
  const { steps_per_second, waited_percent, not_finite_steps } = range ? figuresOf(group, range) : overview;
  const course = (value: (step: StepTiming) => number | null, top?: number, filled = false) => {
    const shown = group.steps.filter((step) => value(step) !== null);
    return (
      <Course
        values={shown.map((step) => value(step)!)}
        pointed={shown.findIndex(({ step }) => step === steps.pointed)}
        chosen={shown.flatMap(({ step }, index) => (range && isIn(range, step) ? [index] : []))}
        {...{ top, filled }}
      />
    );
  };
  const late = group.lateness.stragglers.length > 0;
  const figures = [
    {
      name: "Steps per second",
      value: significant(steps_per_second),
      unit: "",
      course: course(({ seconds }) => (seconds ? 1 / seconds : null)),
      view: "collective_table",
    },
    {
      name: "Replicas live",
      value: count(live),
      unit: `of ${count(replicas)}`,
      tone: live < replicas && live > 0 ? "error" : undefined,
      course: <Replicas live={live} of={replicas} lost={lost} />,
      view: "topology",
    },
    {
      name: "Time waited",
      value: waited_percent === null ? NOTHING : wholePercent(waited_percent),
      unit: "% of a step",
      tone: late ? "warning" : undefined,
      course: course((step) => step.waited_percent, 100, late),
      view: "heat_map",
    },
    {
      name: "Not finite",
      value: count(not_finite_steps),
      unit: not_finite_steps === 1 ? "step" : "steps",
      tone: not_finite_steps ? "error" : undefined,
      course: course((step) => Number(step.not_finite), 1),
      view: "log",
    },
  ] as const;
  return (
    <div class="wb-figures" role="group" aria-label={range ? `Figures of ${rangeText(range)}` : "Figures"}>
      {figures.map(({ name, value, unit, course: drawn, view, ...rest }) => (
        <Button key={name} class="wb-figure" onClick={() => open(view)}>
          <span class="wb-figure-name">{name}</span>
          <span>
            <b data-severity={"tone" in rest ? rest.tone : undefined}>{value}</b>
            {"\u00a0"}
            {unit}
          </span>
          {drawn}
        </Button>
      ))}
    </div>
  );
}

/** For example "epoch 2, batch 40 of 100". */
export function epochText({ number, batches, of }: EpochFacts): string {
  return `epoch ${number}, batch ${count(batches)}${of < 0 ? "" : ` of ${count(of)}`}`;
}

/** For example "epoch 2, 40 %", where there is little room. */
export function epochShare({ number, batches, of }: EpochFacts): string {
  return joined([`epoch ${number}`, of > 0 && percent((100 * batches) / of)], ", ");
}

/** The figures of some of the newest steps, as `Pace` has them for all. A step counts as at most three median steps. */
export function figuresOf(group: GroupView, range: StepRange) {
  const chosen = group.steps.filter(({ step }) => isIn(range, step));
  const most = (3 * group.pace.step_us) / 1e6;
  const lasted = chosen.flatMap((step) =>
    step.seconds ? [{ ...step, s: Math.min(step.seconds, most) }] : [],
  );
  const all = sumOf(lasted, ({ s }) => s);
  return {
    steps_per_second: all ? lasted.length / all : null,
    waited_percent: all ? sumOf(lasted, (step) => step.s * step.waited_percent) / all : null,
    not_finite_steps: chosen.filter((step) => step.not_finite).length,
  };
}

const WIDTH = 168;
const HEIGHT = 26;

interface CourseProps {
  values: readonly number[];
  /** Number of the value under the pointer, or -1. */
  pointed: number;
  /** Numbers of the selected values. */
  chosen: readonly number[];
  top: number | undefined;
  filled: boolean;
}

/** From zero, or up to `top`; the newest value at the right end. */
function Course({ values, pointed, chosen, top, filled }: CourseProps) {
  if (!values.length) return <svg class="wb-course" aria-hidden viewBox={`0 0 ${WIDTH} ${HEIGHT}`} />;
  // The top is that of usual values, so that one short step does not flatten all others.
  const usual = ascending(values)[Math.floor(0.95 * (values.length - 1))]!;
  const peak = top ?? Math.max(1e-12, 1.25 * usual);
  const x = (index: number) => (values.length < 2 ? WIDTH - 4 : (index / (values.length - 1)) * (WIDTH - 4));
  const y = (value: number) => HEIGHT - 3 - Math.min(1, value / peak) * (HEIGHT - 7);
  const line = values
    .map((value, index) => `${index ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`)
    .join("");
  const last = values.length - 1;
  return (
    <svg
      class="wb-course"
      data-tone={filled ? "warning" : undefined}
      aria-hidden
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
    >
      {chosen.length > 0 && (
        <path class="wb-course-chosen" d={`M${x(chosen[0]!) - 2} 0V${HEIGHT}H${x(chosen.at(-1)!) + 2}V0`} />
      )}
      {filled && (
        <path class="wb-course-ground" d={`${line}V${HEIGHT}H${values.length < 2 ? WIDTH - 4 : 0}Z`} />
      )}
      <path d={line} fill="none" />
      {pointed >= 0 && <path d={`M${x(pointed).toFixed(1)} 0V${HEIGHT}`} class="wb-course-pointed" />}
      <circle cx={x(last)} cy={y(values[last]!)} r="2.5" />
    </svg>
  );
}

/**
 * A line for each replica that is present; a bar if there are many. A saved page may not know the lost ones, and then
 * colours none.
 */
function Replicas({ live, of, lost }: { live: number; of: number; lost: readonly number[] | undefined }) {
  const isThere = (replica: number) => (lost ? live > 0 && !lost.includes(replica) : replica < live);
  const lines = of <= 8 ? of : 1;
  const share = of ? live / of : 0;
  return (
    <svg class="wb-course" aria-hidden viewBox={`0 0 ${WIDTH} ${HEIGHT}`}>
      {Array.from({ length: lines }, (_, line) => (
        <rect
          key={line}
          x="0"
          y={lines === 1 ? 10 : 2 + (line * (HEIGHT - 5)) / (lines - 1)}
          width={(WIDTH - 4) * (of <= 8 ? Number(isThere(line)) : share)}
          height={of <= 4 ? 3 : 2}
          rx="1"
          style={{ fill: of <= 8 && (lost || live === of) ? replicaColour(line) : "var(--wb-ink-3)" }}
        />
      ))}
    </svg>
  );
}
