// The cost of input: the stages of each host's pipeline from left to right, the one that delays all, and who starves.
import { useState } from "preact/hooks";
import { WARNING } from "../colours";
import { Courses } from "../parts/courses";
import { Bar } from "../parts/marks";
import { Brushed, stepsOf } from "../parts/steps";
import { Dots, MOST_RINGS, rowOf } from "../parts/dots";
import { ChartOrTable } from "../parts/head";
import { perSecond } from "../parts/rates";
import { Sign } from "../parts/status";
import { named, numeric, replicaOf, selecting, Table, type Column } from "../parts/table";

import {
  count,
  counted,
  NOTHING,
  percent,
  rateText,
  secondsText,
  significant,
  sumOf,
  timeText,
  wholePercent,
} from "../format";
import type { InputFlow, PipelineFlow, StageFlow, StageRange } from "../models";
import { isLit } from "../selection";
import type { Context, View } from "../view";
import { Button, Note, Quiet } from "../parts/small";

export const input: View<InputFlow> = {
  title: "Input",
  draw(shown) {
    const { model, context } = shown;
    const axis = stepsOf(model.sampled, context);
    return (
      <ChartOrTable
        title="Input"
        facts={[
          counted(
            sumOf(model.pipelines, ({ hosts }) => hosts?.length || 1) + model.hidden_pipelines,
            "pipeline",
          ),
          `measured for ${secondsText(model.elapsed_seconds)}`,
          model.limit,
        ]}
        status={model.status}
        verdict={model}
        chart={<Picture {...shown} />}
        table={<Twin {...shown} />}
      >
        <Brushed steps={axis} />
      </ChartOrTable>
    );
  },
};

function Picture({ model, context }: { model: InputFlow; context: Context }) {
  const { pipelines, hidden_pipelines: hidden } = model;
  return (
    <>
      {pipelines.map((pipeline, index) => (
        <Pipeline key={`${pipeline.name} ${index}`} pipeline={pipeline} alone={pipelines.length === 1} />
      ))}
      {hidden > 0 && <Note>{counted(hidden, "more pipeline")} with other stages, not drawn</Note>}
      {model.replicas.length > 0 && <Waits model={model} context={context} />}
    </>
  );
}

/** The stages of a host, or of many equal ones, which can be expanded. */
function Pipeline({ pipeline, alone }: { pipeline: PipelineFlow; alone: boolean }) {
  const { name, why, hosts = [], rates = [], busy_percent: busy = [] } = pipeline;
  const [isOpen, setOpen] = useState(false);
  return (
    <section class="wb-pipeline" aria-label={`input pipeline of ${name}`}>
      {(!alone || hosts.length > 0) && (
        <h4>
          {name}{" "}
          {why && (
            <>
              <Sign />
              {why}{" "}
            </>
          )}
          <Quiet>
            {hosts.length > 0 && "median "}
            {perSecond(pipeline.elements_per_second)}
            {nowOf(pipeline)}
          </Quiet>{" "}
          {hosts.length > 0 && (
            <Button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              Host by host
            </Button>
          )}
        </h4>
      )}
      {isOpen && (
        <Dots
          label={`elements per second of ${name}`}
          rows={[rowOf("elements/s", rates), ...(busy.length ? [rowOf("busy %", busy)] : [])]}
          nameOf={(host) => hosts[host]!}
          heights={[84, 120]}
        />
      )}
      <Flow stages={nested(pipeline)} />
    </section>
  );
}

/** A stage with the pipelines that it reads. */
interface Step {
  stage: StageFlow;
  /** For many hosts, how far they are from each other. */
  range: StageRange | undefined;
  bottleneck: boolean;
  inputs: Step[][];
}

/** The stages as a tree. In the model, an input's stages precede the stage that reads it, one level deeper. */
function nested({ stages, bottleneck, ranges }: PipelineFlow): Step[] {
  const read: Step[][][] = []; // by depth: pipelines that no stage has read yet
  stages.forEach((stage, index) => {
    const inputs = read[stage.depth + 1] ?? [];
    read.length = Math.min(read.length, stage.depth + 1);
    const pipelines = (read[stage.depth] ??= []);
    if (stage.is_source || !pipelines.length) pipelines.push([]);
    pipelines.at(-1)!.push({ stage, range: ranges?.[index], bottleneck: index === bottleneck, inputs });
  });
  return (read[0] ?? []).flat();
}

function Flow({ stages }: { stages: Step[] }) {
  return (
    <ol class="wb-flow">
      {stages.map((step, index) => (
        <li key={index}>
          {step.inputs.length > 0 && (
            <div class="wb-inputs">
              {step.inputs.map((inner, number) => (
                <Flow key={number} stages={inner} />
              ))}
            </div>
          )}
          <Card step={step} />
        </li>
      ))}
    </ol>
  );
}

function Card({ step: { stage, range, bottleneck } }: { step: Step }) {
  return (
    <div class="wb-stage" data-bottleneck={bottleneck ? "yes" : undefined}>
      <code title={stage.name}>{stage.name}</code>
      <b>
        {perSecond(stage.elements_per_second)}
        {nowOf(stage)}
      </b>
      {range && <Quiet>{endsOf(range.elements_per_second, significant)}</Quiet>}
      <span>
        <Bar share={stage.busy_share} {...(bottleneck ? { colour: WARNING } : {})} />
        {share(stage.busy_share)} busy{range && endsOf(range.busy_share, (busy) => wholePercent(100 * busy))}
      </span>
      <Quiet>
        {stage.own_us === null ? NOTHING : timeText(stage.own_us)} each
        {stage.bytes_per_second !== null && ` · ${bytesRate(stage.bytes_per_second)}`}
      </Quiet>
      {stage.workers_text && <span>{stage.workers_text}</span>}
      {stage.queue_capacity !== null && (
        <span>
          <Bar share={(stage.queue_fill ?? 0) / Math.max(1, stage.queue_capacity)} />
          queue {stage.queue_text}
        </span>
      )}
      {stage.failures > 0 && (
        <span>
          <Sign />
          {counted(stage.failures, "failure")}
        </span>
      )}
      {stage.note && <Quiet>{stage.note}</Quiet>}
      {bottleneck && (
        <strong>
          <Sign />
          bottleneck
        </strong>
      )}
    </div>
  );
}

interface Wait {
  replica: number;
  /** Of the time. */
  percent: number;
  starving: boolean;
}

/** How long each replica waited; recordings of earlier versions have only those that waited longest. */
function waitsOf({ replicas, replica_percent: percents = [] }: InputFlow): Wait[] {
  if (!percents.length) return replicas.map((wait) => ({ ...wait, percent: 100 * wait.waited_share }));
  const starving = new Set(replicas.filter((wait) => wait.starving).map(replicaOf));
  return percents.map((percent, replica) => ({ replica, percent, starving: starving.has(replica) }));
}

function Waits({ model, context }: { model: InputFlow; context: Context }) {
  const waits = waitsOf(model);
  return (
    <>
      <h4>How long replicas waited for their batches</h4>
      <Dots
        label="Percent of the time"
        rows={[
          rowOf(
            "waited %",
            waits.map((wait) => wait.percent),
          ),
        ]}
        nameOf={(column) => `replica ${waits[column]!.replica}`}
        outliers={waits.flatMap((wait, column) => (wait.starving ? [column] : []))}
        rings={waits.length <= MOST_RINGS}
        isLit={(column) => isLit(context.selected, waits[column]!.replica)}
        onPick={(column) => context.select(waits[column]!.replica)}
        heights={[96, 320]}
      />
      <Courses
        label="Waiting for batches"
        courses={[{ name: "longest wait", values: model.waited_percent ?? [] }]}
        sampled={model.sampled}
        context={context}
      />
    </>
  );
}

interface Line {
  key: string;
  pipeline: PipelineFlow;
  stage: StageFlow;
  range: StageRange | undefined;
  bottleneck: boolean;
}

function Twin({ model, context }: { model: InputFlow; context: Context }) {
  const lines: Line[] = model.pipelines.flatMap((pipeline, number) =>
    pipeline.stages.map((stage, index) => ({
      key: `${number} ${index}`,
      pipeline,
      stage,
      range: pipeline.ranges?.[index],
      bottleneck: index === pipeline.bottleneck,
    })),
  );
  return (
    <>
      <Table
        label="What each stage costs"
        empty="nothing was read yet"
        columns={[...STAGES, lines.some(({ range }) => range) && RANGE]}
        rows={lines}
        keyOf={({ key }) => key}
      />
      {model.replicas.length > 0 && (
        <Table
          label="How long replicas waited for their batches"
          columns={WAITS}
          rows={waitsOf(model)}
          keyOf={replicaOf}
          {...selecting(context, replicaOf)}
        />
      )}
    </>
  );
}

const RANGE = named<Line>(
  "range",
  ({ range }) => (range && endsOf(range.elements_per_second, significant).trim()) || NOTHING,
  { help: "of elements/s, over the hosts", rank: 1 },
);

const STAGES: Column<Line>[] = [
  named("host", ({ pipeline }) => pipeline.name, { rank: 6 }),
  named(
    "stage",
    ({ stage, bottleneck }) => `${"  ".repeat(stage.depth)}${stage.name}${bottleneck ? " ▲ bottleneck" : ""}`,
    {
      least: 120,
      help: "a method of the dataset",
    },
  ),
  numeric("elements/s", ({ stage }) => stage.elements_per_second, significant),
  numeric("now/s", ({ stage }) => stage.recent_per_second, significant, {
    help: "elements per second in the last seconds",
    rank: 1,
  }),
  numeric("data rate", ({ stage }) => stage.bytes_per_second, bytesRate, { rank: 4, help: "in bytes" }),
  numeric("busy", ({ stage }) => stage.busy_share, share, {
    help: "part of the time in which its workers worked, on average",
  }),
  numeric("own time each", ({ stage }) => stage.own_us, timeText, {
    help: "time of its own work per element, without the stages before it",
    rank: 1,
  }),
  {
    title: "queue",
    rank: 2,
    help: "elements that wait in it, of how many can",
    text: ({ stage }) => stage.queue_text || NOTHING,
  },
  { title: "workers", rank: 3, help: "what computes it", text: ({ stage }) => stage.workers_text || NOTHING },
  numeric("failures", ({ stage }) => stage.failures, count, { rank: 5, help: "how many" }),
];

const WAITS: Column<Wait>[] = [
  numeric("replica", replicaOf),
  {
    title: "waited",
    help: "part of the time",
    text: (wait) => `${wait.starving ? "▲ starving " : ""}${percent(wait.percent)}`,
    order: (wait) => wait.percent,
  },
];

function bytesRate(bytesPerSecond: number | null): string {
  return rateText(bytesPerSecond === null ? null : bytesPerSecond / 1e9);
}

function nowOf({ recent_per_second }: { recent_per_second: number | null }): string {
  return recent_per_second === null ? "" : `, now ${perSecond(recent_per_second)}`;
}

/** The lowest and the highest of many hosts; nothing if they are equal. */
function endsOf(ends: readonly [number, number], text: (value: number) => string): string {
  const [low, high] = ends.map(text);
  return low === high ? "" : ` (${low} to ${high})`;
}

function share(value: number): string {
  return percent(100 * value);
}
