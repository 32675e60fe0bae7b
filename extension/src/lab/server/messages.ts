// The messages of the Jupyter server, as workbench/server defines them; tests/extension compares the two.
import type { Change } from "../../delta";
import type { Collectives, Models } from "../../models";

export interface StrategySummary {
  label: string;
  replicas: number;
  status: string;
  step: number;
}

/** Workers that wait for a notebook. */
export interface PoolSummary {
  kind: string;
  threads: boolean;
  scaling: boolean;
  /** How many replicas there were when the number last changed. */
  settled: number;
  minimum: number;
  /** The maximum while a notebook uses them; 0 for a fixed number. */
  maximum: number;
}

export interface Summary {
  status: string;
  text: string;
  replicas: number;
  replicas_live: number;
  hosts: number;
  busbw: number | null;
  alerts: number;
  nan: number;
  /** The most important statement: "error", "warning", "good" or "watching", and its words. */
  severity: string;
  sentence: string;
  embedded: boolean;
  strategies: StrategySummary[];
  /** Only for workers that wait for a notebook. */
  pool: PoolSummary | null;
}

export interface ClusterInfo {
  id: string;
  /** "driver": a notebook or script that drives a cluster; "workers": waiting for one. */
  kind: string;
  name: string;
  pid: number;
  started: number;
  /** Id of the Jupyter kernel that drives it; "" for a script. */
  kernel: string;
  workers_of: string;
  connect_code: string;
  summary: Summary;
}

/** View -> the channel of a cluster that it draws. */
export const CHANNEL_OF = {
  overview: "collectives",
  topology: "topology",
  values: "values",
  array_sharding: "array_sharding",
  dataset_sharding: "dataset_sharding",
  input: "input",
  data_service: "data_service",
  servers: "servers",
  collective_table: "collectives",
  lanes: "collectives",
  sweep: "collectives",
  heat_map: "collectives",
  stuck: "collectives",
  log: "collectives",
  collectives: "collectives",
  devices: "devices",
} as const satisfies Partial<Record<keyof Models, string>>;

/** The list of recorded runs. Watched under the cluster "", because it belongs to none. */
export const RUNS = "runs";

export type Channel = (typeof CHANNEL_OF)[keyof typeof CHANNEL_OF] | typeof RUNS;
export type AnyModel = Models[keyof Models];

export type ServerMessage =
  | { type: "clusters"; clusters: ClusterInfo[] }
  | { type: "model"; cluster: string; channel: string; model: AnyModel }
  | { type: "part"; cluster: string; channel: string; part: Partial<AnyModel> }
  | {
      type: "feed";
      cluster: string;
      channel: string;
      frame: Omit<Collectives, "snapshot">;
      change: Change;
    };
