// Generated from workbench/ui/models/messages.py by `python extension/models.py`; do not edit.

/** A replica on its device. */
export interface ReplicaNode {
  group: string;
  replica: number;
  busy: boolean;
  doing: string;
  news?: string;
  busy_share?: number | null;
}

/** A device of a worker; `name` such as "cpu:0", `kind` "CPU", "GPU" or "TPU". */
export interface DeviceNode {
  name: string;
  kind: string;
  replicas: ReplicaNode[];
}

/** A worker process. */
export interface WorkerNode {
  name: string;
  pid: number;
  status: string;
  detail: string;
  memory_bytes: number | null;
  heartbeat_age_seconds: number;
  devices: DeviceNode[];
}

/** A host and its workers. */
export interface HostNode {
  name: string;
  workers: WorkerNode[];
}

/** A strategy. */
export interface StrategyNode {
  label: string;
  replicas: number;
  status: string;
  transport: string;
  generation: number;
  step: number;
  bandwidth?: number | null;
}

/** A cluster: hosts, their workers, and what runs there. */
export interface Topology {
  run: string;
  status: string;
  hosts: HostNode[];
  strategies: StrategyNode[];
}

/** Facts about an array; for complex arrays, the figures are those of absolute values. */
export interface Summary {
  shape: number[];
  dtype: string;
  read: number;
  mean: number | null;
  std: number | null;
  min: number | null;
  max: number | null;
  l2: number | null;
  zeros: number;
  nan: number;
  inf: number;
  first_bad: number;
  histogram: number[];
  sha256: string;
}

/** One replica's component. */
export interface ReplicaSummary {
  replica: number;
  host: string;
  device: string;
  summary: Summary | string;
  age_seconds: number | null;
  note: string;
  bad_since: number;
  step: number;
}

/** How one component differs from that of replica 0. */
export interface Difference {
  replica: number;
  largest: number | null;
  elements: number | null;
}

/** A number that steps return, such as a loss, over the newest steps. */
export interface ResultCourse {
  name: string;
  function: string;
  steps: number[];
  mean: (number | null)[];
  replicas: ((number | null)[])[];
  low: (number | null)[];
  high: (number | null)[];
}

/** How components that should be equal compare. */
export interface Agreement {
  in_sync: boolean;
  sha256: string;
  max_abs_difference: number | null;
  first_replica: number;
  since: string;
  sentence?: string;
  evidence?: string;
  step?: number;
  differences?: Difference[];
  course?: ResultCourse | null;
}

/** How one figure of the components is distributed over the replicas for which it is finite. */
export interface Quantiles {
  figure: string;
  low: number;
  p10: number;
  median: number;
  p90: number;
  high: number;
}

/** How the components of many replicas compare. */
export interface ReplicaSpread {
  quantiles: Quantiles[];
  outliers: number[];
  outlying: number;
  not_finite: number;
  rest?: string;
}

/** The first collective with an input that is not finite, and the replicas that provided it. */
export interface Onset {
  step: number;
  seq: number;
  op: string;
  site: string;
  replicas: number[];
  n: number;
  last_step: number;
  certain: boolean;
}

/** One leaf of the inspected structure. */
export interface InspectedValue {
  name: string;
  kind: string;
  replicas: ReplicaSummary[];
  agreement: Agreement | null;
  hints: string[];
  spread: ReplicaSpread | null;
  entered: Onset | null;
  run_id?: string;
  group?: string;
  course?: ResultCourse | null;
}

/** Elements of one replica's component, as rows and columns of cells. */
export interface Elements {
  value: number;
  replica: number;
  difference: boolean;
  shape: number[];
  axes: [number, number];
  index: number[];
  extent: [number, number];
  steps: [number, number];
  cells: ((number | string)[])[];
}

/** What went wrong first among the inspected values. */
export interface FirstBad {
  value: number;
  replica: number;
  text: string;
}

/** The steps of a dump, one of which is shown. */
export interface Steps {
  steps: number[];
  shown: number;
}

/** What `wb.inspect` found, and the elements of one value if requested. */
export interface Values {
  values: InspectedValue[];
  elements: Elements | null;
  looked_at: number;
  first: FirstBad | null;
  steps: Steps | null;
}

/** The part of an array on one device. */
export interface ArrayPart {
  replica: number;
  host: string;
  device: string;
  start: number[];
  stop: number[];
  size_bytes: number;
}

/** Which device holds which part of an array. */
export interface ArraySharding {
  name: string;
  kind: string;
  shape: number[];
  dtype: string;
  parts: ArrayPart[];
  size_bytes: number;
  imbalance_percent: number;
  sentence: string;
}

/** What a replica reads in one step. */
export interface Reading {
  step: number;
  rows: number;
  ranges: ([number, number])[];
  text: string;
  hidden?: number;
}

/** A replica that reads, or several together. */
export interface Reader {
  replica: number;
  host: number;
  rows: number;
  empty_steps: number;
  readings: Reading[];
  rows_before?: number;
  label?: string;
  nothing?: string;
}

/** Where periodic samples lie on the axis of a strategy's steps. */
export interface SampledSteps {
  run_id: string;
  group: string;
  steps: number[];
}

/** How long replicas waited for elements that arrived together: before the first one, not for each. */
export interface InputWait {
  first: number;
  count: number;
  passed_us: number;
  waited_us: number[];
}

/** One epoch of a distributed dataset that is being read. */
export interface InputProgress {
  epoch: number;
  given: number;
  elapsed_seconds: number;
  steps: number[];
  waited_seconds: number[];
  sampled?: SampledSteps | null;
  waits?: InputWait[];
}

/** All elements that a replica reads in a step, on request. */
export interface ListedElements {
  step: number;
  replica: number;
  rows: number;
  runs: string[];
  hidden: number;
}

/** Which replica reads what of a dataset: the part of `data.sharding.model.Sharding` that fits in a message. */
export interface DatasetSharding {
  summary: string;
  policy: string;
  reason: string;
  algorithm: string;
  hosts: number;
  replicas_per_host: number;
  batch_size: number;
  elements: number;
  duplicates: number;
  dropped: number | null;
  steps: number;
  remainder: number[];
  readers: Reader[];
  hidden_readers: number;
  counts: number[];
  positions: number;
  marks: ([number, string])[];
  limit: string;
  progress: InputProgress | null;
  together?: Reader[];
  read_by?: string[];
  figures?: string;
  sentence?: string;
  advice?: string;
  remainder_text?: string;
  remedy?: string;
  listed?: ListedElements | null;
}

/** A stage of a pipeline, or its source. */
export interface StageFlow {
  name: string;
  depth: number;
  is_source: boolean;
  elements: number;
  failures: number;
  elements_per_second: number;
  recent_per_second: number | null;
  bytes_per_second: number | null;
  own_seconds: number;
  own_us: number | null;
  busy_share: number;
  waited_seconds: number;
  blocked_seconds: number;
  workers: number;
  worker_kind: string;
  workers_chosen: boolean;
  queue_fill: number | null;
  queue_capacity: number | null;
  queue_chosen: boolean;
  held_bytes: number;
  block_rows: number;
  note: string;
  workers_text?: string;
  queue_text?: string;
}

/** How much one stage varies between hosts with the same pipeline. */
export interface StageRange {
  elements_per_second: [number, number];
  busy_share: [number, number];
  queue_fill: [number, number];
}

/** The input pipeline of one host or of this process; or the medians of many hosts with equal pipelines. */
export interface PipelineFlow {
  host: number;
  name: string;
  processes: number;
  elements_per_second: number;
  recent_per_second: number | null;
  stages: StageFlow[];
  bottleneck: number;
  why?: string;
  hosts?: string[];
  rates?: number[];
  busy_percent?: number[];
  ranges?: StageRange[];
}

/** How long a replica waited for its batches. */
export interface ReplicaWait {
  replica: number;
  host: number;
  waited_seconds: number;
  waited_share: number;
  starving: boolean;
}

/** What the input of a program costs. */
export interface InputFlow {
  status: string;
  sentence: string;
  advice: string;
  elapsed_seconds: number;
  limit: string;
  pipelines: PipelineFlow[];
  hidden_pipelines: number;
  replicas: ReplicaWait[];
  hidden_replicas: number;
  sampled?: SampledSteps | null;
  waited_percent?: number[];
  replica_percent?: number[];
}

/** A job. */
export interface JobStatus {
  name: string;
  iteration: number;
  processing_mode: string;
  consumers: number;
  num_consumers: number;
  missing: number[];
  cached: boolean;
  lanes: number;
  lanes_complete: number;
  moves: number;
  splits_done: number;
  splits_leased: number;
  splits_left: number;
  elements: number;
  elements_per_second: number;
  complete: boolean;
}

/** A worker. */
export interface WorkerStatus {
  address: string;
  lanes: number;
  elements: number;
  elements_per_second: number;
}

/** A data service at one moment. `str` and the notebook show it as tables. */
export interface ServiceStatus {
  address: string;
  datasets: number;
  jobs: JobStatus[];
  workers: WorkerStatus[];
  status: string;
  sentence: string;
  advice: string;
}

/** A variable, or a shard of one, on a parameter server. */
export interface HeldVariable {
  name: string;
  dtype: string;
  shape: number[];
  size_bytes: number;
  slot_bytes: number;
  updates: number;
}

/** A parameter server. */
export interface ServerStatus {
  name: string;
  host: string;
  address: string;
  state: string;
  detail: string;
  restarts: number;
  variables: HeldVariable[];
  hidden_variables: number;
  size_bytes: number;
  updates: number;
  updates_per_second: number;
  repeated: number;
  left_out: number;
  newest_staleness: number | null;
  typical_staleness: number | null;
}

/** A worker, and the functions that it runs. */
export interface WorkerFunctions {
  name: string;
  host: string;
  state: string;
  detail: string;
  restarts: number;
  done: number;
  functions_per_second: number;
  running: string;
  running_together: number;
  running_seconds: number;
}

/** Numbers of scheduled functions. */
export interface FunctionQueue {
  waiting: number;
  blocked: number;
  running: number;
  done: number;
  failed: number;
  cancelled: number;
  run_again: number;
  capacity: number;
  error: string;
}

/** Parameter servers and their workers at one moment. `str` and the notebook show it as tables. */
export interface ServersStatus {
  servers: ServerStatus[];
  workers: WorkerFunctions[];
  queue: FunctionQueue | null;
  status: string;
  sentence: string;
  advice: string;
}

/** How much was seen, and how much is missing; counts are since the feed began. */
export interface Counters {
  records: number;
  collectives: number;
  internal: number;
  failed: number;
  pending: number;
  incomplete: number;
  dropped: number;
  dropped_events: number;
  duplicates: number;
}

/** Timing of the collectives of one kind, reduction, size bucket, dtype and group. */
export interface TableRow {
  key: string;
  op: string;
  redop: string;
  dtype: string;
  group: string;
  n: number;
  count: number;
  algorithm: string;
  packs: number;
  transport: string;
  purpose: string;
  size_bytes: number;
  bucket_bytes: number;
  samples: number;
  last_us: number;
  p50_us: number;
  p99_us: number;
  cv_percent: number;
  algbw: number | null;
  busbw: number | null;
  limit_percent: number | null;
  wait_percent: number;
  skew_us: number;
  skew_err_us: number;
  late_replica: number | null;
  late_host: string | null;
  recent_us: number[];
  version: number;
}

/** One line of the lanes view: a replica and its label, such as "r3 b cuda:1". */
export interface Lane {
  replica: number;
  label: string;
}

/** One collective in the lanes view; each replica waits from its arrival to `ready_ns`, then transfers. */
export interface LaneItem {
  key: string;
  op: string;
  state: string;
  site: string;
  step: number;
  seq: number;
  size_bytes: number;
  ready_ns: number;
  err_ns: number;
  mean_enter_ns: number;
  last_end_ns: number;
  enter_ns: (number | null)[];
  end_ns: (number | null)[];
  version: number;
}

/** One step in which replicas met, over all of them. */
export interface StepTiming {
  step: number;
  begin_ns: number;
  seconds: number | null;
  waited_percent: number;
  not_finite: boolean;
}

/** A replica that is late step after step. */
export interface Late {
  replica: number;
  steps: number;
  of_steps: number;
  by_us: number;
  share: number;
  compute_us: number;
  others_us: number;
}

/** Heat map: how late each replica came in each step, summed over its collectives. */
export interface Lateness {
  replicas: number[];
  steps: number[];
  late_us: ((number | null)[])[];
  stragglers: number[];
  slow_steps: number[];
  text: string;
  late: Late[];
  late_steps: number[];
  enough_us: number;
  median_us: number[];
  waited_shares?: (number | null)[];
}

/** The newest collective that a replica recorded; op "" if it recorded none. */
export interface LastSeen {
  replica: number;
  step: number;
  seq: number;
  op: string;
  site: string;
  now: string;
}

/** A collective that some replicas have entered and others have not reached. */
export interface Stuck {
  step: number;
  seq: number;
  op: string;
  site: string;
  waiting: number[];
  missing: number[];
  since_ns: number;
  last: LastSeen[];
  state: string;
  reached: number[];
  seconds: number;
}

/** A group's pace in its newest steps. */
export interface Pace {
  steps: number;
  last_step: number;
  end_ns: number;
  step_us: number;
  waited_share: number | null;
  sent_share: number | null;
  compute_share: number | null;
  read_share: number;
  steps_per_second?: number | null;
}

/** Steps have become slower. */
export interface Slowdown {
  step: number;
  before_us: number;
  after_us: number;
  grown: string;
  grown_before_us: number;
  grown_after_us: number;
}

/** How the replicas of a group got their newest input. */
export interface InputFacts {
  waited_shares: number[];
  elements: number;
  element_us: number;
  rows: number[];
  empty_for: number[];
}

/** The fullest memory among those of a group's replicas. */
export interface MemoryFacts {
  replica: number;
  used_bytes: number;
  limit_bytes: number;
  grown_bytes: number;
  steps: number;
}

/** How far a loop over a distributed dataset is. */
export interface EpochFacts {
  number: number;
  batches: number;
  of: number;
}

/** When the notebook sent replicas their newest steps. Before that, they were idle, or ran the previous step. */
export interface SentSteps {
  steps: number[];
  at_ns: number[];
  paused_ns?: number[];
}

/** What a feed knows about a group besides its records. */
export interface Told {
  cores: number;
  input: InputFacts | null;
  memory: MemoryFacts | null;
  result: ResultCourse | null;
  cores_used?: number | null;
  epoch?: EpochFacts | null;
  sent?: SentSteps | null;
}

/** One group of replicas in its newest generation. */
export interface GroupView {
  run_id: string;
  group: string;
  generation: number;
  n: number;
  lanes: Lane[];
  hidden_lanes: number;
  hosts: number;
  items: LaneItem[];
  steps: StepTiming[];
  lateness: Lateness;
  stuck: Stuck | null;
  not_finite: Onset | null;
  not_finite_now: Onset | null;
  pace: Pace;
  slowdown: Slowdown | null;
  told: Told;
}

/** An event as shown in the log; fields as in `events.Event`. */
export interface EventItem {
  key: string;
  kind: string;
  name: string;
  message: string;
  t_ns: number;
  severity: string;
  replica: number;
  host: string;
  step: number;
  site: string;
  generation: number;
  group?: string;
  version: number;
}

/** Everything that views draw of collectives, at one moment. */
export interface Snapshot {
  version: number;
  counters: Counters;
  table: TableRow[];
  internal: TableRow[];
  groups: GroupView[];
  events: EventItem[];
}

/** Timing at one message size, over its newest collectives. */
export interface SweepPoint {
  size_bytes: number;
  samples: number;
  p10_us: number;
  p50_us: number;
  p90_us: number;
  p10_busbw: number | null;
  p50_busbw: number | null;
  p90_busbw: number | null;
}

/** An earlier sweep of an operation, to compare with. */
export interface Baseline {
  name: string;
  n: number;
  transport: string;
  points: SweepPoint[];
}

/** Bandwidth of one operation over message sizes. */
export interface Sweep {
  key: string;
  op: string;
  redop: string;
  dtype: string;
  group: string;
  n: number;
  transport: string;
  points: SweepPoint[];
  latency_us: number | null;
  bandwidth: number | null;
  limit: number | null;
  baseline: Baseline | null;
}

/** The most important statement about a run; see `telemetry.verdicts`. */
export interface Verdict {
  severity: string;
  code: string;
  sentence: string;
  evidence: string;
  link: string;
  replica: number;
  step: number;
}

/** A run at a glance: the strategy whose replicas last took part in a collective. */
export interface Overview {
  run_id: string;
  group: string;
  replicas: number;
  live: number;
  hosts: number;
  step: number;
  more_groups: number;
  verdict: Verdict;
  steps_per_second: number | null;
  waited_percent: number | null;
  not_finite_steps: number;
  others?: Verdict[];
  lost?: number[];
}

/** Timing of collectives, and everything else that the feed knows. */
export interface Collectives {
  status: string;
  silent: string[];
  snapshot: Snapshot;
  sweeps: Sweep[];
  overview: Overview;
}

/** How much of a worker, or of a GPU, is in use. */
export interface DeviceUse {
  key: string;
  host: string;
  name: string;
  kind: string;
  status: string;
  use_percent: number | null;
  memory_bytes: number | null;
  memory_limit_bytes: number | null;
  recent_percent: (number | null)[];
}

/** Use of all devices of a cluster. */
export interface Devices {
  run: string;
  status: string;
  devices: DeviceUse[];
  sampled?: SampledSteps | null;
}

/** A recorded run. */
export interface RunEntry {
  path: string;
  name: string;
  written: string;
  size_bytes: number;
  records: number;
  duration_seconds: number;
  replicas: number;
  alerts: number;
  problem: string;
}

/** How long the collectives of one kind took in a run, from the arrival of the last replica. */
export interface Spread {
  samples: number;
  p25_us: number;
  p50_us: number;
  p75_us: number;
  busbw: number | null;
}

/** One kind of collective in two runs; None for a run without it. */
export interface ComparedRow {
  key: string;
  op: string;
  redop: string;
  dtype: string;
  n: number;
  size_bytes: number;
  first: Spread | null;
  second: Spread | null;
  ratio: number | null;
  difference_seconds: number | null;
  verdict: string;
}

/** Recorded runs, and two of them compared. */
export interface Runs {
  folder: string;
  runs: RunEntry[];
  compared: string[];
  rows: ComparedRow[];
}

/** A recorded run, with everything that its views draw. */
export interface Replay {
  run: RunEntry;
  first_step: number;
  last_step: number;
  shown_from: number;
  shown_to: number;
  collectives: Collectives;
  topology: Topology | null;
  devices: Devices | null;
  values: Values | null;
  array_sharding: ArraySharding | null;
  dataset_sharding: DatasetSharding | null;
  input: InputFlow | null;
  data_service: ServiceStatus | null;
  servers: ServersStatus | null;
  notes: string[];
}

/** What each view draws. */
export interface Models {
  topology: Topology;
  values: Values;
  array_sharding: ArraySharding;
  dataset_sharding: DatasetSharding;
  input: InputFlow;
  data_service: ServiceStatus;
  servers: ServersStatus;
  overview: Collectives;
  collectives: Collectives;
  collective_table: Collectives;
  lanes: Collectives;
  sweep: Collectives;
  heat_map: Collectives;
  stuck: Collectives;
  log: Collectives;
  devices: Devices;
  runs: Runs;
  replay: Replay;
}
