// The views by name; the names and their models are those of workbench/ui/models/messages.py.
import type { Models } from "../models";
import type { View, ViewName } from "../view";
import { arraySharding } from "./array_sharding";
import { collectives } from "./collectives";
import { collectiveTable } from "./collective_table";
import { dataService } from "./data_service";
import { datasetSharding } from "./dataset_sharding";
import { devices } from "./devices";
import { heatMap } from "./heat_map";
import { input } from "./input";
import { lanes } from "./lanes";
import { log } from "./log";
import { overview } from "./overview";
import { replay } from "./replay";
import { runs } from "./runs";
import { servers } from "./servers";
import { stuck } from "./stuck";
import { sweep } from "./sweep";
import { topology } from "./topology";
import { values } from "./values";

export type { ViewName };

export const VIEWS: { readonly [K in ViewName]: View<Models[K]> } = {
  overview,
  topology,
  values,
  array_sharding: arraySharding,
  dataset_sharding: datasetSharding,
  input,
  data_service: dataService,
  servers,
  collectives,
  collective_table: collectiveTable,
  lanes,
  sweep,
  heat_map: heatMap,
  stuck,
  log,
  devices,
  runs,
  replay,
};

/** Views that can be opened by themselves; recorded runs are opened from the list of runs. */
export const OPENED = (Object.keys(VIEWS) as ViewName[]).filter((name) => name !== "replay");
