// What input costs: the stages of each host's pipeline from left to right, the one that holds back all, who starves.
import { WARNING } from "../colours";
import { Courses } from "../parts/courses";
import { Bar, ReplicaName } from "../parts/marks";
import { Brushed, stepsOf } from "../parts/steps";
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
  sizeText,
  timeText,
} from "../format";
import type { InputFlow, PipelineFlow, ReplicaWait, StageFlow } from "../models";
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
          counted(model.pipelines.length + model.hidden_pipelines, "pipeline"),
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
  const many = model.pipelines.length > 1;
  return (
    <>
      {model.pipelines.map((pipeline, index) => (
        <section
          key={`${pipeline.host} ${index}`}
          class="wb-pipeline"
          aria-label={`input pipeline of ${pipeline.name}`}
        >
          {many && (
            <h4>
              {pipeline.name}{" "}
              <Quiet>
                {perSecond(pipeline.elements_per_second)}
                {nowOf(pipeline)}
              </Quiet>
            </h4>
          )}
          <Flow stages={nested(pipeline)} />
        </section>
      ))}
      {model.hidden_pipelines > 0 && (
        <Note>{counted(model.hidden_pipelines, "more pipeline")}, not drawn</Note>
      )}
      {model.replicas.length > 0 && <Waits model={model} context={context} />}
    </>
  );
}

/** A stage with the pipelines that it reads. */
interface Step {
  stage: StageFlow;
  bottleneck: boolean;
  inputs: Step[][];
}

/** The stages as a tree; in the model those of an input come before the stage that reads it, one deeper. */
function nested({ stages, bottleneck }: PipelineFlow): Step[] {
  const read: Step[][][] = []; // by depth: pipelines that no stage has read yet
  stages.forEach((stage, index) => {
    const inputs = read[stage.depth + 1] ?? [];
    read.length = Math.min(read.length, stage.depth + 1);
    const pipelines = (read[stage.depth] ??= []);
    if (stage.is_source || !pipelines.length) pipelines.push([]);
    pipelines.at(-1)!.push({ stage, bottleneck: index === bottleneck, inputs });
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

function Card({ step: { stage, bottleneck } }: { step: Step }) {
  return (
    <div class="wb-stage" data-bottleneck={bottleneck ? "yes" : undefined}>
      <code title={stage.name}>{stage.name}</code>
      <b>
        {perSecond(stage.elements_per_second)}
        {nowOf(stage)}
      </b>
      <span>
        <Bar share={stage.busy_share} {...(bottleneck ? { colour: WARNING } : {})} />
        {share(stage.busy_share)} busy
      </span>
      <Quiet>
        {stage.own_us === null ? NOTHING : timeText(stage.own_us)} each
        {stage.bytes_per_second !== null && ` · ${bytesRate(stage.bytes_per_second)}`}
      </Quiet>
      {stage.workers > 0 && <span>{workersOf(stage)}</span>}
      {stage.queue_capacity !== null && (
        <span>
          <Bar share={(stage.queue_fill ?? 0) / Math.max(1, stage.queue_capacity)} />
          queue {queueOf(stage)}
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

function Waits({ model, context }: { model: InputFlow; context: Context }) {
  return (
    <>
      <h4>How long replicas waited for their batches</h4>
      <ul class="wb-waits">
        {model.replicas.map((wait) => (
          <li key={wait.replica}>
            <Button
              aria-pressed={wait.replica === context.selected.replica}
              onClick={() => context.select(wait.replica)}
            >
              <ReplicaName replica={wait.replica} />
            </Button>
            <Bar share={wait.waited_share} {...(wait.starving ? { colour: WARNING } : {})} />
            {share(wait.waited_share)}
            {wait.starving && (
              <span>
                {" "}
                <Sign />
                starving
              </span>
            )}
          </li>
        ))}
      </ul>
      {model.hidden_replicas > 0 && (
        <Note>{counted(model.hidden_replicas, "more replica")} that waited less</Note>
      )}
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
  bottleneck: boolean;
}

function Twin({ model, context }: { model: InputFlow; context: Context }) {
  const lines: Line[] = model.pipelines.flatMap((pipeline, number) =>
    pipeline.stages.map((stage, index) => ({
      key: `${number} ${index}`,
      pipeline,
      stage,
      bottleneck: index === pipeline.bottleneck,
    })),
  );
  return (
    <>
      <Table
        label="What each stage costs"
        empty="nothing was read yet"
        columns={STAGES}
        rows={lines}
        keyOf={({ key }) => key}
      />
      {model.replicas.length > 0 && (
        <Table
          label="How long replicas waited for their batches"
          columns={WAITS}
          rows={[...model.replicas]}
          keyOf={replicaOf}
          {...selecting(context, replicaOf)}
        />
      )}
    </>
  );
}

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
    text: ({ stage }) => queueOf(stage),
  },
  { title: "workers", rank: 3, help: "what computes it", text: ({ stage }) => workersOf(stage) },
  numeric("failures", ({ stage }) => stage.failures, count, { rank: 5, help: "how many" }),
];

const WAITS: Column<ReplicaWait>[] = [
  numeric("replica", (wait) => wait.replica),
  numeric("host", (wait) => wait.host, String, { rank: 2 }),
  numeric("waited", (wait) => wait.waited_seconds, secondsText, { rank: 1, help: "for its batches" }),
  {
    title: "of the time",
    help: "waited",
    text: (wait) => `${wait.starving ? "▲ starving " : ""}${share(wait.waited_share)}`,
    order: (wait) => wait.waited_share,
  },
];

function bytesRate(bytesPerSecond: number | null): string {
  return rateText(bytesPerSecond === null ? null : bytesPerSecond / 1e9);
}

function nowOf({ recent_per_second }: { recent_per_second: number | null }): string {
  return recent_per_second === null ? "" : `, now ${perSecond(recent_per_second)}`;
}

function share(value: number): string {
  return percent(100 * value);
}

function workersOf(stage: StageFlow): string {
  if (!stage.workers) return NOTHING;
  const kind =
    stage.workers > 1 ? stage.worker_kind : stage.worker_kind === "processes" ? "process" : "thread";
  return `${stage.workers} ${kind}${stage.workers_chosen ? " (AUTOTUNE)" : ""}`;
}

function queueOf(stage: StageFlow): string {
  if (stage.queue_capacity === null) return NOTHING;
  const held = stage.held_bytes ? `, ${sizeText(stage.held_bytes)}` : "";
  return `${significant(stage.queue_fill)} of ${stage.queue_capacity}${stage.queue_chosen ? " (AUTOTUNE)" : ""}${held}`;
}
