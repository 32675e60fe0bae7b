// Replica × step: how late each came. A row that stays late is a straggler; a column is a step that was slow for all.
import { known, meanOf, runsOf, significant } from "../format";
import type { Collectives, GroupView, ResultCourse } from "../models";
import { LatenessCells, LatenessLegend } from "../overview/lateness";
import { Course } from "../overview/loss";
import { laneNames, type Row } from "../overview/rows";
import { ChartOrTable } from "../parts/head";
import { NoMeeting } from "../parts/nothing";
import { groupText } from "../parts/terms";
import { Brushed, isIn, stepsOf, useStill } from "../parts/steps";
import { named, numeric, replicaOf, selecting, Table, type Column } from "../parts/table";
import type { Context, View } from "../view";

const LATE = "behind the first one";

export const heatMap: View<Collectives> = {
  title: "Lateness",
  draw({ model, context }) {
    const groups = model.snapshot.groups.filter((group) => group.lateness.steps.length);
    if (!groups.length) {
      return <NoMeeting title="No step yet in which several replicas met" />;
    }
    return (
      <>
        {groups.map((group) => (
          <Group key={`${group.run_id}|${group.group}`} group={group} context={context} />
        ))}
      </>
    );
  },
};

function Group({ group: newest, context }: { group: GroupView; context: Context }) {
  const axis = stepsOf(newest, context);
  const group = useStill(newest, axis.range !== null, ({ lateness }) =>
    lateness.steps.some((step) => isIn(axis.range, step)),
  );
  const { replicas, steps, slow_steps, text } = group.lateness;
  const names = laneNames(group);
  const shown = { first: steps[0]!, last: steps.at(-1)! };
  const rows = replicas.map((replica, line) => ({
    replica,
    label: names[group.lanes.findIndex((lane) => lane.replica === replica)] ?? `replica ${replica}`,
    lane: -1,
    line,
  }));
  return (
    <ChartOrTable
      title="Lateness"
      facts={[
        "by replica and step",
        groupText(group.group, group.n),
        group.hidden_lanes > 0 && `the ${replicas.length} latest of ${group.n} replicas`,
        text && `▶ ${text}`,
        slow_steps.length > 0 && `▼ slow for everybody: step ${runsOf(slow_steps.slice(-8))}`,
      ]}
      chart={
        <>
          <LatenessCells {...{ group, rows, shown, context }} slow />
          <div class="wb-legend">
            <LatenessLegend group={group} />
          </div>
        </>
      }
      more={
        <>
          <h4>Milliseconds behind the first one</h4>
          <Course {...{ of: group, steps, rows, shown, context }} course={courseOf(group.lateness)} />
        </>
      }
      table={<Twin lateness={group.lateness} rows={rows} context={context} />}
    >
      <Brushed steps={axis} />
    </ChartOrTable>
  );
}

/** The same as a line: the mean, and a dot for each replica. */
function courseOf({ replicas, steps, late_us }: GroupView["lateness"]): ResultCourse {
  const ms = late_us.map((line) => line.map((us) => us && us / 1000));
  const of: (ResultCourse["replicas"][number] | undefined)[] = [];
  if (replicas.length <= 8) replicas.forEach((replica, line) => (of[replica] = ms[line]!));
  return {
    name: "lateness",
    function: "",
    steps,
    replicas: Array.from(of, (line) => line ?? []),
    low: [],
    high: [],
    mean: steps.map((_, column) => meanOf(known(ms.map((line) => line[column] ?? null)))),
  };
}

interface TwinProps {
  lateness: GroupView["lateness"];
  rows: readonly Row[];
  context: Context;
}

function Twin({ lateness: { steps, late_us }, rows, context }: TwinProps) {
  const late = ({ line }: Row, column: number) => late_us[line]?.[column] ?? null;
  const columns: Column<Row>[] = [
    named("replica", ({ label }) => label, { order: ({ replica }) => replica }),
    numeric("mean µs", ({ line }) => meanOf(known(late_us[line] ?? [])), significant, { help: LATE }),
    ...steps.map((step, column) =>
      numeric(`step ${step}`, (row: Row) => late(row, column), significant, { help: LATE }),
    ),
  ];
  return (
    <Table
      label="Lateness in µs by replica and step"
      columns={columns}
      rows={rows}
      keyOf={replicaOf}
      {...selecting(context, replicaOf)}
    />
  );
}
