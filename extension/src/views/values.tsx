// Values replica by replica: figures, a small histogram, what is not a number, and whether copies agree. For more than
// 32 replicas: quantiles, and the outliers.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { WARNING } from "../colours";
import { Age } from "../parts/age";
import { ChartOrTable } from "../parts/head";
import { IconButton } from "../parts/icons";
import { Sign } from "../parts/status";
import { Brushed, isIn, stepsOf, useStill } from "../parts/steps";
import { count, counted } from "../format";
import type { FirstBad, InspectedValue, Steps as DumpSteps, Values } from "../models";
import type { Context, View } from "../view";
import { AgreementFacts } from "../values/agreement";
import { Distribution } from "../values/distribution";
import { closeUp, ElementsMap, placeOf, wholeOf } from "../values/elements";
import { axisOf, History, Numbers } from "../values/numbers";
import { ReplicaTable } from "../values/replica_table";
import { type Shown, shownOf } from "../values/shown";
import { Button, Note, Quiet } from "../parts/small";

/** Up to this many values have their histograms drawn by themselves. */
const FEW = 3;

export const values: View<Values> = {
  title: "Values",
  draw({ model, context }) {
    const parts = useRef<HTMLDivElement>(null);
    const { elements, steps } = model;
    if (!model.values.length && !steps) return <Note>nothing to inspect</Note>;
    return (
      <>
        {steps && <StepChoice steps={steps} ask={context.ask} />}
        <Actions model={model} context={context} parts={parts} />
        <div ref={parts}>
          {model.values.map((value, index) => (
            <Value
              key={`${index} ${value.name}`}
              {...{ value, index, context }}
              lookedAt={model.looked_at}
              alone={model.values.length === 1}
              fixed={Boolean(model.steps)}
            >
              {elements?.value === index && (
                <div style={{ marginTop: "10px" }}>
                  <ElementsMap elements={elements} value={value} context={context} />
                </div>
              )}
            </Value>
          ))}
        </div>
      </>
    );
  },
};

/** Which step of a dump is shown. */
function StepChoice({ steps: { steps, shown }, ask }: { steps: DumpSteps; ask: Context["ask"] }) {
  const named = (step: number | undefined) =>
    step === undefined || step < 0 ? "outside of steps" : `step ${count(step)}`;
  const last = steps.length - 1;
  return (
    <div class="wb-form">
      {ask && last > 0 && (
        <input
          type="range"
          aria-label="step"
          aria-valuetext={named(steps[shown])}
          min={0}
          max={last}
          value={shown}
          onChange={(event) => ask({ kind: "step", shown: Number(event.currentTarget.value) })}
        />
      )}
      <span>{named(steps[shown])}</span>{" "}
      <Quiet>
        {counted(steps.length, "step")} from {named(steps[0])} to {named(steps[last])}
      </Quiet>
    </div>
  );
}

interface ActionsProps {
  model: Values;
  context: Context;
  parts: { readonly current: HTMLDivElement | null };
}

/** Links to the first NaN, and to the present figures. */
function Actions({ model, context, parts }: ActionsProps) {
  const { ask } = context;
  const bad = model.first;
  const alone = model.values.length === 1; // the statement about all covers it
  if (!bad && (alone || (!ask && !model.looked_at))) return null;
  const go = ({ value, replica }: FirstBad) => {
    if (context.selected.replica !== replica && replica >= 0) context.select(replica);
    parts.current?.children[value]?.scrollIntoView({ block: "nearest" });
    const summary = model.values[value]?.replicas.find((one) => one.replica === replica)?.summary;
    if (ask && typeof summary === "object" && summary.shape.length) {
      const { shape } = summary;
      ask(closeUp(wholeOf(value, replica, shape), shape, placeOf(summary.first_bad, shape)));
    }
  };
  return (
    <div class="wb-head">
      {bad && (
        <Button onClick={() => go(bad)}>
          <Sign sign="✖" /> {bad.text}
        </Button>
      )}
      {!alone && ask && !model.steps && <Button onClick={() => ask({ kind: "again" })}>Look again</Button>}
      {!alone && <Looked at={model.looked_at} />}
    </div>
  );
}

function Looked({ at }: { at: number }) {
  if (at <= 0) return null;
  return (
    <Quiet>
      looked at <Age seconds={0} at={at} /> ago
    </Quiet>
  );
}

interface ValueProps {
  value: InspectedValue;
  index: number;
  context: Context;
  lookedAt: number;
  /** Whether it is the only one. */
  alone: boolean;
  /** Whether it belongs to a dump, in which nothing changes. */
  fixed: boolean;
  children: ComponentChildren;
}

function Value({ value, index, context, lookedAt, alone, fixed, children }: ValueProps) {
  const [asked, setAsked] = useState<boolean | null>(null);
  const axis = stepsOf(axisOf(value), context);
  // Charts of steps stand still while steps are selected; the statements about the value are updated.
  const still = useStill(
    value,
    axis.range !== null,
    (one) => (one.course ?? one.agreement?.course)?.steps.some((step) => isIn(axis.range, step)) ?? false,
  );
  const course = still.agreement?.course;
  const shown = shownOf(value, context.selected.replica);
  const { holder } = shown;
  // Shown by itself if one row has the figures of all replicas, and few values are shown.
  const isSpread = asked ?? (shown.rows.length === 1 && index < FEW);
  const facts = (
    <AgreementFacts value={value} arrays={shown.arrays} steps={axis}>
      {alone && <Looked at={lookedAt} />}
    </AgreementFacts>
  );
  const { spread } = shown;
  const numbers = (spread || shown.areNumbers) && (
    <Numbers {...{ value, spread, context }} course={still.course} />
  );
  const table = <ReplicaTable {...{ value, shown, context, lookedAt }} />;
  return (
    <div class="wb-part">
      <ChartOrTable
        title={`${value.kind}${value.name && ` ${value.name}`}`}
        chart={numbers && [facts, numbers]}
        table={[facts, table]}
      >
        {(value.course || (value.agreement?.step ?? -1) >= 0) && <Brushed steps={axis} />}
        <Looks {...{ index, context, holder }} again={alone && !fixed} elements={!children} />
        {shown.histogram && (
          <IconButton
            name="histogram"
            label="Histogram"
            pressed={isSpread}
            onClick={() => setAsked(!isSpread)}
          />
        )}
      </ChartOrTable>
      {course && <History {...{ value, course, context }} word="largest" />}
      {shown.histogram && isSpread && <Distribution summary={shown.histogram} name={shown.name} />}
      {children}
      {value.hints.map((hint) => (
        <p key={hint} class="wb-alert">
          <Sign colour={WARNING} />
          {hint}
        </p>
      ))}
    </div>
  );
}

interface LooksProps {
  index: number;
  context: Context;
  holder: Shown["holder"];
  /** Whether what was created can have changed. */
  again: boolean;
  /** Whether elements are hidden. */
  elements: boolean;
}

/** Links to the present figures, and to the elements. */
function Looks({ index, context: { ask }, holder, again, elements }: LooksProps) {
  if (!ask) return null;
  return (
    <>
      {again && <IconButton name="again" label="Look again" onClick={() => ask({ kind: "again" })} />}
      {elements && holder && (
        <IconButton
          name="elements"
          label="Elements"
          onClick={() => ask(wholeOf(index, holder.replica, holder.summary.shape))}
        />
      )}
    </>
  );
}
