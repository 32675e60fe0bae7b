// The figures of a value, replica by replica; outliers come first.
import { ageText, count, figure, joined, NOTHING } from "../format";
import type { Agreement, InspectedValue, ReplicaSummary, Summary } from "../models";
import { Age, ageNow } from "../parts/age";
import { Bar, Spark } from "../parts/marks";
import { Sign } from "../parts/status";
import { named, numeric, replicaOf, selecting, Table, type Column, type Columns } from "../parts/table";
import type { Context } from "../view";
import { binsOf, countedOf } from "./distribution";
import { arrayOf, arrayText, type Shown } from "./shown";

type Row = ReplicaSummary;

interface Props {
  value: InspectedValue;
  shown: Shown;
  context: Context;
  lookedAt: number;
}

export function ReplicaTable({ value, shown, context, lookedAt }: Props) {
  const { replicas } = value;
  const name = `${value.kind} ${value.name}`;
  return (
    <Table
      label={name}
      columns={[
        ...placeColumns(replicas, shown),
        ...differenceColumns(value.agreement),
        ...figureColumns(value),
        ...originColumns(replicas, lookedAt),
      ]}
      rows={shown.rows}
      keyOf={replicaOf}
      {...selecting(context, replicaOf)}
    />
  );
}

/** Which replica it is, and where. */
function placeColumns(replicas: readonly Row[], { same, arrays }: Shown): Columns<Row> {
  return [
    {
      title: "replica",
      text: ({ replica }) => (same ? `all ${replicas.length}` : replica < 0 ? NOTHING : String(replica)),
      order: replicaOf,
    },
    !same &&
      named("host:device", ({ host, device }) => (host ? `${host}:${device}` : "notebook"), {
        rank: 3,
        least: 90,
      }),
    arrays.length > 1 &&
      named("array", ({ summary }) => arrayText(summary), { help: "type and shape", rank: 2, least: 90 }),
  ];
}

/** How far it is from replica 0. */
function differenceColumns(agreement: Agreement | null): Columns<Row> {
  const differences = agreement?.differences ?? [];
  if (!differences.length) return [];
  const apart = ({ replica }: Row) => differences.find((one) => one.replica === replica);
  const largest = (row: Row) => apart(row)?.largest ?? null;
  const help = "from replica 0";
  return [
    numeric("largest difference", largest, figure, {
      help,
      show: (row) => (
        <>
          <Bar share={(largest(row) ?? 0) / (agreement!.max_abs_difference || 1)} /> {figure(largest(row))}
        </>
      ),
    }),
    numeric("elements that differ", (row) => apart(row)?.elements ?? null, count, { help }),
  ];
}

type Figure = "mean" | "std" | "min" | "max" | "l2" | "zeros" | "nan" | "inf";

/** What its elements are. */
function figureColumns({ replicas, agreement }: InspectedValue): Columns<Row> {
  const number = (title: string, of: Figure, more: Partial<Column<Row>>, as = figure) =>
    numeric(title, (row) => arrayOf(row)?.[of] ?? null, as, more);
  /** How many elements are not numbers; emphasised if there are any. */
  const alarm = (title: string, of: Figure, term = "") =>
    number(
      title,
      of,
      { term, help: "how many", show: (row) => <Alarm n={arrayOf(row)?.[of] ?? null} /> },
      count,
    );
  const help = "of the finite elements";
  return [
    number("mean", "mean", { help, rank: agreement?.differences?.length ? 2 : 0 }),
    number("deviation", "std", { help, rank: 1, term: "std" }),
    number("min", "min", { help, rank: 4 }),
    number("max", "max", { help, rank: 4 }),
    number("norm", "l2", { help: `Euclidean ${help}`, rank: 7, term: "L2" }),
    number("zeros", "zeros", { help: "how many", rank: 8 }, count),
    alarm("NaN", "nan"),
    alarm("infinite", "inf", "±Inf"),
    replicas.some((row) => arrayOf(row)?.histogram.length) &&
      named("histogram", (row) => arrayOf(row)?.histogram.join(" ") || NOTHING, {
        rank: 5,
        help: `${help}, from min to max`,
        show: (row) => <Histogram summary={arrayOf(row)} />,
      }),
  ];
}

function Alarm({ n }: { n: number | null }) {
  if (!n) return count(n);
  return (
    <strong>
      <Sign sign="✖" /> {count(n)}
    </strong>
  );
}

/** Since when and from which step it is, and what is wrong with it. */
function originColumns(replicas: readonly Row[], lookedAt: number): Columns<Row> {
  return [
    numeric(
      "age",
      ({ age_seconds }) => age_seconds,
      (age) => (age === null ? NOTHING : ageText(ageNow(age, lookedAt))),
      {
        rank: 6,
        help: "since it was made or assigned",
        show: ({ age_seconds: age }) => (age === null ? NOTHING : <Age seconds={age} at={lookedAt} />),
      },
    ),
    replicas.some(({ step }) => step >= 0) &&
      numeric("step", ({ step }) => (step < 0 ? null : step), count, {
        rank: 6,
        help: "the step that made it, or assigned it last",
      }),
    replicas.some(({ note }) => note) &&
      named("note", ({ note }) => note, {
        help: "what is wrong",
        least: 120,
        show: ({ note }) =>
          note && (
            <>
              <Sign sign="✖" /> {note}
            </>
          ),
      }),
  ];
}

/** The histogram of a replica's component, as small as a figure. */
function Histogram({ summary }: { summary: Summary | null }) {
  if (!summary?.histogram.length) return NOTHING;
  const { histogram: counts, min, max } = summary;
  const fullest = binsOf(summary)[counts.indexOf(Math.max(...counts))]!;
  const most = `most from ${figure(fullest.from)} to ${figure(fullest.to)}`;
  return (
    <Spark
      values={counts}
      columns
      label={joined([`histogram from ${figure(min)} to ${figure(max)}`, most, countedOf(summary)], ", ")}
    />
  );
}
