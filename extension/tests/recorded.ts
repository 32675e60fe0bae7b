// The recorded models, as what the compiler finds them to be: a model that lacks a field does not compile.
import type { Change } from "../src/delta";
import type {
  ArraySharding,
  Collectives,
  DatasetSharding,
  ServersStatus,
  ServiceStatus,
  InputFlow,
  Devices,
  Replay,
  Runs,
  Topology,
  Values,
} from "../src/models";
import arrayCopiesJson from "./recorded/array_copies.json" with { type: "json" };
import arrayUnevenJson from "./recorded/array_uneven.json" with { type: "json" };
import changeJson from "./recorded/change.json" with { type: "json" };
import collectivesJson from "./recorded/collectives.json" with { type: "json" };
import datasetFilesJson from "./recorded/dataset_files.json" with { type: "json" };
import datasetMemoryJson from "./recorded/dataset_memory.json" with { type: "json" };
import datasetRunningJson from "./recorded/dataset_running.json" with { type: "json" };
import serviceLiveJson from "./recorded/service_live.json" with { type: "json" };
import serviceWaitingJson from "./recorded/service_waiting.json" with { type: "json" };
import serversLiveJson from "./recorded/servers_live.json" with { type: "json" };
import serversLostJson from "./recorded/servers_lost.json" with { type: "json" };
import devicesJson from "./recorded/devices.json" with { type: "json" };
import inputMeasuredJson from "./recorded/input_measured.json" with { type: "json" };
import inputStarvingJson from "./recorded/input_starving.json" with { type: "json" };
import lostJson from "./recorded/lost.json" with { type: "json" };
import runsJson from "./recorded/runs.json" with { type: "json" };
import stuckJson from "./recorded/stuck.json" with { type: "json" };
import topologyJson from "./recorded/topology.json" with { type: "json" };
import topologyLostJson from "./recorded/topology_lost.json" with { type: "json" };
import valuesDifferenceJson from "./recorded/values_difference.json" with { type: "json" };
import valuesElementsJson from "./recorded/values_elements.json" with { type: "json" };
import valuesJson from "./recorded/values.json" with { type: "json" };

/** JSON has no tuples: pairs are lists to the compiler. */
type Loose<T> = T extends [unknown, unknown]
  ? (T[0] | T[1])[]
  : T extends (infer Item)[]
    ? Loose<Item>[]
    : T extends object
      ? { [K in keyof T]: Loose<T[K]> }
      : T;

export const arrayCopies: ArraySharding = arrayCopiesJson;
export const arrayUneven: ArraySharding = arrayUnevenJson;
export const change: Change = changeJson;
export const collectives: Collectives = collectivesJson;
export const datasetFiles = datasetFilesJson satisfies Loose<DatasetSharding> as unknown as DatasetSharding;
export const datasetMemory = datasetMemoryJson satisfies Loose<DatasetSharding> as unknown as DatasetSharding;
export const datasetRunning =
  datasetRunningJson satisfies Loose<DatasetSharding> as unknown as DatasetSharding;
export const devices: Devices = devicesJson;
export const serviceLive: ServiceStatus = serviceLiveJson;
export const serviceWaiting: ServiceStatus = serviceWaitingJson;
export const serversLive: ServersStatus = serversLiveJson;
export const serversLost: ServersStatus = serversLostJson;
export const inputMeasured: InputFlow = inputMeasuredJson;
export const inputStarving: InputFlow = inputStarvingJson;
export const lost: Collectives = lostJson;
export const runs: Runs = runsJson;
export const stuck: Collectives = stuckJson;
export const topology: Topology = topologyJson;
export const topologyLost: Topology = topologyLostJson;
export const values: Values = valuesJson;
export const valuesDifference = valuesDifferenceJson satisfies Loose<Values> as unknown as Values;
export const valuesElements = valuesElementsJson satisfies Loose<Values> as unknown as Values;
export const replay: Replay = {
  run: runs.runs.find((run) => run.name === "baseline")!,
  first_step: 0,
  last_step: 119,
  shown_from: 0,
  shown_to: 119,
  collectives: { ...collectives, status: "replay" },
  topology: { ...topology, status: "replay" },
  devices: { ...devices, status: "replay" },
  values,
  array_sharding: arrayUneven,
  dataset_sharding: datasetMemory,
  input: { ...inputStarving, status: "replay" },
  data_service: { ...serviceLive, status: "replay" },
  servers: { ...serversLive, status: "replay" },
  notes: ["devices: too large to be recorded"],
};
