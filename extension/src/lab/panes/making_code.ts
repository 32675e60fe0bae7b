// The line of Python that creates a view in a cell.
import type { ViewName } from "../../view";

const CODE: Record<Exclude<ViewName, "replay">, string> = {
  overview: "wb.overview()",
  topology: "wb.topology()",
  values: "wb.inspect(value)",
  array_sharding: "wb.explain_sharding(value)",
  dataset_sharding: "wb.explain_sharding(dataset)",
  input: "dataset.explain()",
  data_service: "service",
  servers: "strategy",
  collectives: "wb.collectives()",
  collective_table: "wb.collectives()",
  lanes: "wb.collectives()",
  sweep: "wb.collectives()",
  heat_map: "wb.collectives()",
  stuck: "wb.collectives()",
  log: "wb.log()",
  devices: "wb.devices()",
  runs: "wb.runs()",
};

/**
 * The code for the view of a pane, which shows a recorded `run` or "".
 *
 * Paths of runs begin at the server's root; a kernel works in the folder of its notebook, whose path is `notebook`.
 */
export function makingCode(view: ViewName, run: string, notebook: string): string {
  const line =
    run || view === "replay" ? `wb.open_run(${JSON.stringify(relative(run, notebook))})` : CODE[view];
  return `import workbench as wb\n\n${line}`;
}

function relative(path: string, notebook: string): string {
  const to = path.split("/");
  const from = notebook.split("/").slice(0, -1);
  let same = 0;
  while (same < from.length && same < to.length - 1 && from[same] === to[same]) same++;
  return [...from.slice(same).map(() => ".."), ...to.slice(same)].join("/");
}
