// Values replica by replica: figures, a small histogram, what is not a number, and whether copies agree. Of more than 32
// replicas: quantiles, and the replicas that are far from the others.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { WARNING } from "../colours";
import { Age, ageNow } from "../parts/age";
import { ChartOrTable } from "../parts/head";
import { IconButton } from "../parts/icons";
import { Sign, StatusWord } from "../parts/status";
import { Bar, Spark } from "../parts/marks";
import { Brushed, isIn, stepsOf, useStill } from "../parts/steps";
import { named, numeric, selecting, Table, type Column } from "../parts/table";
import { wording } from "../parts/terms";
import { ageText, count, counted, dtypeText, figure, joined, NOTHING } from "../format";
import type {
  Agreement,
  FirstBad,
  InspectedValue,
  Quantiles,
  ReplicaSpread,
  ReplicaSummary,
  Steps as DumpSteps,
  Summary,
  Values,
} from "../models";
import type { Context, View } from "../view";
import { binsOf, countedOf, Distribution } from "../values/distribution";
import { closeUp, ElementsMap, placeOf, wholeOf } from "../values/elements";
import { axisOf, History, Numbers } from "../values/numbers";
import { Button, Note, Quiet } from "../parts/small";
import { Verdict } from "../parts/verdict";
import type { Steps } from "../selection";

/** Of so many values the histograms are drawn by themselves. */
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

/** To the first NaN, and to figures as they are now. */
function Actions({ model, context, parts }: ActionsProps) {
  const { ask } = context;
  const bad = model.first;
  const alone = model.values.length === 1; // what is said of all is said of it
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
  /** Whether it is of a dump, in which nothing changes. */
  fixed: boolean;
  children: ComponentChildren;
}

function Value({ value, index, context, lookedAt, alone, fixed, children }: ValueProps) {
  const { agreement, replicas, spread } = value;
  const [all, setAll] = useState(false);
  const [asked, setAsked] = useState<boolean | null>(null);
  const { ask, selected } = context;
  const axis = stepsOf(axisOf(value), context);
  // Charts of steps stand still while steps are picked out; what is said of the value goes on.
  const still = useStill(
    value,
    axis.range !== null,
    (one) => (one.course ?? one.agreement?.course)?.steps.some((step) => isIn(axis.range, step)) ?? false,
  );
  const course = still.agreement?.course;
  const arrays = new Set(replicas.map((replica) => arrayText(replica.summary)));
  const same = agreement?.in_sync && replicas.length > 1;
  const some = spread && !same && !all;
  const rows = same
    ? replicas.slice(0, 1)
    : some
      ? replicas.filter(({ replica }) => spread.outliers.includes(replica))
      : replicas;
  const drawable = replicas.filter(
    ({ summary }) => typeof summary !== "string" && !summary.shape.includes(0),
  );
  const shown = drawable.find(({ replica }) => replica === selected.replica) ?? drawable[0];
  const shape = typeof shown?.summary === "object" ? shown.summary.shape : null;
  const summary = typeof shown?.summary === "object" && shown.summary.histogram.length ? shown.summary : null;
  // By itself where the figures of all replicas are in one row, and few values are shown.
  const spreadOut = summary !== null && (asked ?? (rows.length === 1 && !spread && index < FEW));
  const areNumbers =
    replicas.length > 1 &&
    !same &&
    !spread &&
    replicas.every(({ summary }) => typeof summary === "object" && summary.shape.every((size) => size === 1));
  const facts = (
    <>
      {agreement?.sentence && <Verdict sentence={agreement.sentence} advice={agreement.evidence!} />}
      <div class="wb-head">
        {[...arrays].slice(0, 4).map((text) => (
          <span key={text} class="wb-pill">
            {text}
          </span>
        ))}
        {replicas.length > 1 && <Quiet>{counted(replicas.length, "replica")}</Quiet>}
        {agreement ? (
          <AgreementText agreement={agreement} steps={axis} />
        ) : (
          replicas.length > 1 && <Quiet>not synchronised</Quiet>
        )}
        {alone && <Looked at={lookedAt} />}
      </div>
    </>
  );
  const table = (
    <>
      {facts}
      {some && <Quantile spread={spread} name={`${value.kind} ${value.name}`} />}
      <Table
        label={`${value.kind} ${value.name}`}
        columns={columnsOf(value, Boolean(same), arrays.size > 1, lookedAt)}
        rows={rows}
        empty={`no replica is far from the others; all ${replicas.length} are finite`}
        keyOf={(replica) => String(replica.replica)}
        {...selecting(context, ({ replica }: ReplicaSummary) => replica)}
      />
      {spread && !same && (
        <div class="wb-folded">
          <Button aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? "Summary" : `All ${count(replicas.length)} replicas`}
          </Button>
          {some && <Quiet>{spread.rest}</Quiet>}
        </div>
      )}
    </>
  );
  return (
    <div class="wb-part">
      <ChartOrTable
        title={`${value.kind}${value.name && ` ${value.name}`}`}
        chart={
          areNumbers && (
            <>
              {facts}
              <Numbers {...{ value, context }} course={still.course} />
            </>
          )
        }
        table={table}
      >
        {(value.course || (agreement?.step ?? -1) >= 0) && <Brushed steps={axis} />}
        {alone && ask && !fixed && (
          <IconButton name="again" label="Look again" onClick={() => ask({ kind: "again" })} />
        )}
        {ask && shape && !children && (
          <IconButton
            name="elements"
            label="Elements"
            onClick={() => ask(wholeOf(index, shown!.replica, shape))}
          />
        )}
        {summary && (
          <IconButton
            name="histogram"
            label="Histogram"
            pressed={spreadOut}
            onClick={() => setAsked(!spreadOut)}
          />
        )}
      </ChartOrTable>
      {course && <History {...{ value, course, context }} word="largest" />}
      {spreadOut && (
        <Distribution
          summary={summary}
          name={joined(
            [value.name || value.kind, !same && replicas.length > 1 && `replica ${shown!.replica}`],
            ", ",
          )}
        />
      )}
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

/** How each figure is distributed over the replicas. */
function Quantile({ spread, name }: { spread: ReplicaSpread; name: string }) {
  const at = (title: string, of: (part: Quantiles) => number) =>
    numeric(title, of, figure, { help: "of the replicas" });
  return (
    <Table
      label={`${name} over the replicas`}
      columns={[
        named("over replicas", (part: Quantiles) => part.figure, { help: "which figure" }),
        at("min", ({ low }) => low),
        at("10 %", ({ p10 }) => p10),
        at("median", ({ median }) => median),
        at("90 %", ({ p90 }) => p90),
        at("max", ({ high }) => high),
      ]}
      rows={spread.quantiles}
      keyOf={(part) => part.figure}
      empty="no replica has a finite value"
    />
  );
}

function AgreementText({ agreement, steps }: { agreement: Agreement; steps: Steps }) {
  if (agreement.in_sync) {
    const hash = `sha ${agreement.sha256.slice(0, 8)}…, max|Δ| = 0`;
    return (
      <span title={hash}>
        <StatusWord word="in sync" /> <Quiet>{wording("all copies agree", hash)}</Quiet>
      </span>
    );
  }
  // Recordings of earlier versions have no sentence.
  const { sentence, step = -1, first_replica, since } = agreement;
  return (
    <span>
      <StatusWord word="diverged" />{" "}
      {!sentence
        ? joined([`replica ${first_replica}`, since])
        : step >= 0 && (
            <Button class="wb-link" onClick={() => steps.pick(step)}>
              Show step {step} →
            </Button>
          )}
    </span>
  );
}

/** The histogram of a replica's component, as small as a figure. */
function Histogram({ summary }: { summary: Summary | string }) {
  if (typeof summary === "string" || !summary.histogram.length) return NOTHING;
  const { histogram: counts, min, max } = summary;
  const fullest = binsOf(summary)[counts.indexOf(Math.max(...counts))]!;
  const most = `most from ${figure(fullest.from)} to ${figure(fullest.to)}`;
  return (
    <Spark
      values={counts}
      columns
      label={joined([`histogram from ${figure(min)} to ${figure(max)}`, most, countedOf(summary)], ", ")}
    />
  );
}

function columnsOf(
  { replicas, agreement }: InspectedValue,
  same: boolean,
  mixed: boolean,
  lookedAt: number,
): Column<ReplicaSummary>[] {
  const differences = agreement?.differences ?? [];
  const apart = ({ replica }: ReplicaSummary) => differences.find((one) => one.replica === replica);
  const largest = (row: ReplicaSummary) => apart(row)?.largest ?? null;
  /** Of an array; null of what is none. */
  const arrays =
    (of: (summary: Summary) => number | null) =>
    ({ summary }: ReplicaSummary) =>
      typeof summary === "string" ? null : of(summary);
  const number = (
    title: string,
    of: (summary: Summary) => number | null,
    part: Partial<Column<ReplicaSummary>>,
  ) => numeric(title, arrays(of), figure, part);
  /** How many elements are not numbers, loud where there are some. */
  const alarm = (title: string, of: (summary: Summary) => number, term = "") =>
    numeric(title, arrays(of), count, {
      term,
      help: "how many",
      show: (replica) => {
        const bad = arrays(of)(replica);
        return bad ? (
          <strong>
            <Sign sign="✖" /> {count(bad)}
          </strong>
        ) : (
          count(bad)
        );
      },
    });
  const help = "of the finite elements";
  return [
    {
      title: "replica",
      text: ({ replica }) => (same ? `all ${replicas.length}` : replica < 0 ? NOTHING : String(replica)),
      order: ({ replica }) => replica,
    },
    ...(same
      ? []
      : [
          named(
            "host:device",
            ({ host, device }: ReplicaSummary) => (host ? `${host}:${device}` : "notebook"),
            {
              rank: 3,
              least: 90,
            },
          ),
        ]),
    ...(mixed
      ? [
          named("array", ({ summary }: ReplicaSummary) => arrayText(summary), {
            help: "type and shape",
            rank: 2,
            least: 90,
          }),
        ]
      : []),
    ...(differences.length
      ? [
          numeric("largest difference", largest, figure, {
            help: "from replica 0",
            show: (row: ReplicaSummary) => (
              <>
                <Bar share={(largest(row) ?? 0) / (agreement!.max_abs_difference || 1)} />{" "}
                {figure(largest(row))}
              </>
            ),
          }),
          numeric("elements that differ", (row: ReplicaSummary) => apart(row)?.elements ?? null, count, {
            help: "from replica 0",
          }),
        ]
      : []),
    number("mean", (summary) => summary.mean, { help, rank: differences.length ? 2 : 0 }),
    number("deviation", (summary) => summary.std, { help, rank: 1, term: "std" }),
    number("min", (summary) => summary.min, { help, rank: 4 }),
    number("max", (summary) => summary.max, { help, rank: 4 }),
    number("norm", (summary) => summary.l2, { help: `Euclidean ${help}`, rank: 7, term: "L2" }),
    numeric(
      "zeros",
      arrays((summary) => summary.zeros),
      count,
      { rank: 8, help: "how many" },
    ),
    alarm("NaN", (summary) => summary.nan),
    alarm("infinite", (summary) => summary.inf, "±Inf"),
    ...(replicas.some(({ summary }) => typeof summary !== "string" && summary.histogram.length)
      ? [
          named(
            "histogram",
            ({ summary }: ReplicaSummary) =>
              typeof summary === "string" ? NOTHING : summary.histogram.join(" ") || NOTHING,
            {
              rank: 5,
              help: "of the finite elements, from min to max",
              show: ({ summary }: ReplicaSummary) => <Histogram summary={summary} />,
            },
          ),
        ]
      : []),
    {
      title: "age",
      rank: 6,
      help: "since it was made or assigned",
      text: ({ age_seconds }) => (age_seconds === null ? NOTHING : ageText(ageNow(age_seconds, lookedAt))),
      show: ({ age_seconds }) =>
        age_seconds === null ? NOTHING : <Age seconds={age_seconds} at={lookedAt} />,
      order: ({ age_seconds }) => age_seconds ?? -1,
    },
    ...(replicas.some(({ step }) => step >= 0)
      ? [
          numeric("step", ({ step }: ReplicaSummary) => (step < 0 ? null : step), count, {
            rank: 6,
            help: "the step that made it, or assigned it last",
          }),
        ]
      : []),
    ...(replicas.some((replica) => replica.note)
      ? [
          named("note", ({ note }: ReplicaSummary) => note, {
            help: "what is wrong",
            least: 120,
            show: ({ note }: ReplicaSummary) =>
              note && (
                <>
                  <Sign sign="✖" /> {note}
                </>
              ),
          }),
        ]
      : []),
  ];
}

function arrayText(summary: Summary | string): string {
  return typeof summary === "string" ? summary : `${dtypeText(summary.dtype)}[${summary.shape.join(",")}]`;
}
