// The numbers of the overview as tables.
import { count, figure, percent, significant } from "../format";
import type { GroupView, Overview } from "../models";
import { named, numeric, replicaOf, Table, type Column, type Columns } from "../parts/table";
import { epochText } from "./figures";
import { lateSteps, type Row, waitedOf } from "./rows";

export function Twin({ overview, group, rows }: { overview: Overview; group: GroupView; rows: Row[] }) {
  const course = group.told.result;
  const columns: Columns<Row> = [
    named("replica", ({ label }) => label),
    numeric("steps late", (row) => (row.replica < 0 ? null : lateSteps(group, row)), count, {
      help: "in which the others waited for it",
    }),
    { title: "of steps", help: "how many were looked at", text: () => String(group.lateness.steps.length) },
    numeric("waited", (row) => waitedOf(group, row), percent, {
      help: "of all its steps, also those it was last in",
    }),
    course?.replicas.length &&
      numeric(course.name || "result", ({ replica }) => course.replicas[replica]?.at(-1) ?? null, figure, {
        help: "of the newest step",
      }),
  ];
  const figures: [name: string, value: string][] = [
    ["steps per second", significant(overview.steps_per_second)],
    ["replicas live", `${overview.live} of ${overview.replicas}`],
    ["time waited", percent(overview.waited_percent)],
    ["steps not finite", String(overview.not_finite_steps)],
  ];
  const { epoch } = group.told;
  if (epoch) figures.push(["data", epochText(epoch)]);
  if (course) figures.push([course.name || course.function, figure(course.mean.at(-1) ?? null)]);
  const shown: Column<(typeof figures)[number]>[] = [
    named("figure", ([name]) => name, { help: "what is counted" }),
    { title: "now", help: "the newest", text: ([, value]) => value },
  ];
  return (
    <div class="wb-module" role="group" aria-label="Table">
      <Table label="Figures" columns={shown} rows={figures} keyOf={([name]) => name} />
      <Table label="Replicas" columns={columns} rows={rows} keyOf={replicaOf} />
    </div>
  );
}
