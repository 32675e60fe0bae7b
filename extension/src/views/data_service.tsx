// A data service: the progress and rate of each job, the state of its splits, its readers, and how much each worker
// makes.
import { count, counted, NOTHING, percent, runsOf, significant } from "../format";
import type { JobStatus, ServiceStatus, WorkerStatus } from "../models";
import { Crowd } from "../parts/crowd";
import { ChartOrTable } from "../parts/head";
import { Bar } from "../parts/marks";
import { Course, perSecond, useRates } from "../parts/rates";
import { Sign } from "../parts/status";
import { named, numeric, Table, type Column } from "../parts/table";
import type { View } from "../view";
import { Quiet, More } from "../parts/small";

const MOST_JOBS = 16;
const MOST_WORKERS = 32;

export const dataService: View<ServiceStatus> = {
  title: "Data service",
  draw({ model }) {
    return (
      <ChartOrTable
        title="Data service"
        facts={[
          model.address,
          counted(model.workers.length, "worker"),
          counted(model.datasets, "registered dataset"),
        ]}
        status={model.status}
        verdict={model}
        chart={<Picture model={model} />}
        table={<Twin model={model} />}
      />
    );
  },
};

function Picture({ model }: { model: ServiceStatus }) {
  const rates = useRates(model, () => [
    ...model.jobs.map((job): [string, number] => [keyOf(job), job.elements_per_second]),
    ...model.workers.map((worker): [string, number] => [worker.address, worker.elements_per_second]),
  ]);
  // Running ones come first, the latest at the top; complete ones say little more.
  const jobs = [...model.jobs].reverse().sort((a, b) => Number(a.complete) - Number(b.complete));
  const fastest = Math.max(...model.workers.map((worker) => worker.elements_per_second), 1e-9);
  return (
    <>
      {jobs.slice(0, MOST_JOBS).map((job) => (
        <Job key={keyOf(job)} job={job} rates={rates.get(keyOf(job)) ?? []} />
      ))}
      <More hidden={jobs.length - MOST_JOBS} noun="job" />
      {model.workers.length > 0 && (
        <>
          <h4>Workers</h4>
          <Crowd
            noun="worker"
            all={model.workers}
            most={MOST_WORKERS}
            measures={[["elements/s", (worker) => worker.elements_per_second, fastest / 20]]}
            nameOf={(worker) => worker.address}
          >
            {(workers) => (
              <ul class="wb-workers">
                {workers.map((worker) => (
                  <li key={worker.address} class="wb-stage">
                    <code>{worker.address}</code>
                    <b>{perSecond(worker.elements_per_second)}</b>
                    <Bar share={worker.elements_per_second / fastest} />
                    <Course
                      rates={rates.get(worker.address)}
                      label={`elements per second of ${worker.address}, lately`}
                    />
                    <Quiet>
                      {counted(worker.lanes, "lane")} · {counted(worker.elements, "element")} sent
                    </Quiet>
                  </li>
                ))}
              </ul>
            )}
          </Crowd>
        </>
      )}
    </>
  );
}

function Job({ job, rates }: { job: JobStatus; rates: readonly number[] }) {
  return (
    <section
      class="wb-job"
      aria-label={`job ${titleOf(job)}`}
      data-complete={job.complete ? "yes" : undefined}
    >
      <h4>
        {titleOf(job)} <Quiet>{modeOf(job)}</Quiet>
      </h4>
      <div class="wb-job-facts">
        <b>{job.complete ? "✓ complete" : job.cached ? "shared" : perSecond(job.elements_per_second)}</b>
        {!job.complete && !job.cached && (
          <Course rates={rates} label={`elements per second of ${titleOf(job)}, lately`} />
        )}
        {!job.cached && <span>{counted(job.elements, "element")} read</span>}
        {!job.complete && <span>{readersOf(job)}</span>}
        {job.missing.length > 0 && job.consumers > 0 && (
          <span>
            <Sign />
            waits for {job.missing.length === 1 ? "consumer" : "consumers"} {runsOf(job.missing)}
          </span>
        )}
        {job.moves > 0 && (
          <span>
            <Sign />
            {counted(job.moves, "lane")} taken over from lost workers
          </span>
        )}
      </div>
      <Splits job={job} />
    </section>
  );
}

/** The splits of a distributed source as one bar: read, at the workers, to come. */
function Splits({ job }: { job: JobStatus }) {
  const total = job.splits_done + job.splits_leased + job.splits_left;
  if (!total) return null;
  const parts = [
    { kind: "done", n: job.splits_done, text: "read" },
    { kind: "leased", n: job.splits_leased, text: "at workers" },
    { kind: "left", n: job.splits_left, text: "to come" },
  ].filter(({ n }) => n > 0);
  return (
    <>
      <div class="wb-splits" aria-hidden>
        {parts.map(({ kind, n }) => (
          <i key={kind} data-kind={kind} style={{ flexGrow: n }} />
        ))}
      </div>
      <div class="wb-quiet">
        {counted(total, "split")}: {parts.map(({ n, text }) => `${count(n)} ${text}`).join(", ")}
      </div>
    </>
  );
}

function Twin({ model }: { model: ServiceStatus }) {
  return (
    <>
      <Table
        label="Jobs of the data service"
        empty="no job has begun"
        columns={JOBS}
        rows={[...model.jobs]}
        keyOf={keyOf}
      />
      <Table
        label="Workers of the data service"
        empty="no worker is there"
        columns={WORKERS}
        rows={[...model.workers]}
        keyOf={(worker) => worker.address}
      />
    </>
  );
}

const JOBS: Column<JobStatus>[] = [
  named("job", titleOf, { least: 90, help: "its name" }),
  named("mode", modeOf, { rank: 6, help: "which worker gets what" }),
  numeric("elements/s", (job) => (job.cached ? null : job.elements_per_second), significant),
  numeric("elements", (job) => (job.cached ? null : job.elements), count, {
    help: "how many its consumers have read",
  }),
  splits("splits read", (job) => job.splits_done, 2, "splits of the source whose elements were all read"),
  splits("at workers", (job) => job.splits_leased, 3, "splits that are being read"),
  splits("to come", (job) => job.splits_left, 4, "splits that wait"),
  named("consumers", readersOf, { rank: 1, help: "who reads it" }),
  {
    title: "lanes",
    help: "streams of elements, one or several per worker; those that were read to the end",
    rank: 5,
    text: (job) => `${job.lanes_complete} of ${job.lanes}`,
    order: (job) => job.lanes,
  },
  numeric("taken over", (job) => job.moves, count, {
    help: "how often a lane went to another worker because its own was lost",
    rank: 7,
  }),
];

const WORKERS: Column<WorkerStatus>[] = [
  named("worker", (worker) => worker.address, { least: 90 }),
  numeric("elements/s", (worker) => worker.elements_per_second, significant),
  numeric("elements sent", (worker) => worker.elements, count, { rank: 1, help: "how many" }),
  numeric("lanes", (worker) => worker.lanes, count, { rank: 2, help: "streams of elements" }),
];

function keyOf(job: JobStatus): string {
  return `${job.name} ${job.iteration}`;
}

function titleOf(job: JobStatus): string {
  return job.iteration ? `${job.name}, pass ${job.iteration + 1}` : job.name;
}

function modeOf(job: JobStatus): string {
  const shared = job.cached ? ", shared by trainers" : "";
  switch (job.processing_mode) {
    case "DYNAMIC":
      return `distributed_epoch: each element once${shared}`;
    case "OFF":
      return `parallel_epochs: every worker computes everything${shared}`;
    default:
      return `${job.processing_mode}: each worker a fixed part${shared}`;
  }
}

function readersOf(job: JobStatus): string {
  return job.num_consumers
    ? `${job.consumers} of ${counted(job.num_consumers, "consumer")}, in rounds`
    : counted(job.consumers, "consumer");
}

/** A part of the splits, with its share; nothing if the source is not distributed. */
function ofAll(splits: number, job: JobStatus): string {
  const total = job.splits_done + job.splits_leased + job.splits_left;
  return total ? `${count(splits)} (${percent((100 * splits) / total)})` : NOTHING;
}

function splits(
  title: string,
  of: (job: JobStatus) => number,
  rank: number,
  help: string,
): Column<JobStatus> {
  return { title, rank, text: (job) => ofAll(of(job), job), order: of, help };
}
