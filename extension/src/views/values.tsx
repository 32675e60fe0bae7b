// Values replica by replica: figures, a small histogram, what is not a number, and whether copies agree.
import { BAD, WARNING } from "../colours";
import { Head, Sign, StatusWord } from "../parts/head";
import { Table, type Column } from "../parts/table";
import { count, counted, dtypeText, figure, NOTHING, timeText } from "../format";
import type { Agreement, InspectedValue, ReplicaSummary, Summary, Values } from "../models";
import type { Context, View } from "../view";

export const values: View<Values> = {
  title: "Values",
  draw({ model, context }) {
    if (!model.values.length) return <p class="wb-quiet">nothing to inspect</p>;
    return (
      <>
        {model.values.map((value, index) => (
          <Value key={`${index} ${value.name}`} value={value} context={context} />
        ))}
      </>
    );
  },
};

function Value({ value, context }: { value: InspectedValue; context: Context }) {
  const { agreement, replicas } = value;
  const arrays = new Set(replicas.map((replica) => arrayText(replica.summary)));
  const same = agreement?.in_sync && replicas.length > 1;
  const rows = same ? replicas.slice(0, 1) : replicas;
  return (
    <div class="wb-part">
      <Head title={`${value.kind}${value.name && ` ${value.name}`}`}>{}</Head>
      <div class="wb-head">
        {[...arrays].slice(0, 4).map((text) => (
          <span key={text} class="wb-pill">
            {text}
          </span>
        ))}
        {replicas.length > 1 && <span class="wb-quiet">{counted(replicas.length, "replica")}</span>}
        {agreement ? (
          <AgreementText agreement={agreement} />
        ) : (
          replicas.length > 1 && <span class="wb-quiet">not synchronised</span>
        )}
      </div>
      <Table
        label={`${value.kind} ${value.name}`}
        columns={columnsOf(replicas, Boolean(same), arrays.size > 1)}
        rows={rows}
        keyOf={(replica) => String(replica.replica)}
        isSelected={(replica) => replica.replica >= 0 && replica.replica === context.selected.replica}
        onPick={(replica) => replica.replica >= 0 && context.select(replica.replica)}
      />
      {value.hints.map((hint) => (
        <p key={hint} class="wb-alert">
          <Sign sign="▲" colour={WARNING} />
          {hint}
        </p>
      ))}
    </div>
  );
}

function AgreementText({ agreement }: { agreement: Agreement }) {
  if (agreement.in_sync) {
    return (
      <span>
        <StatusWord word="in sync" />{" "}
        <span class="wb-quiet">sha {agreement.sha256.slice(0, 8)}…, max|Δ| = 0</span>
      </span>
    );
  }
  const gap = agreement.max_abs_difference;
  return (
    <span>
      <StatusWord word="diverged" /> {gap === null ? "shapes differ" : `max|Δ| = ${figure(gap)}`}, first
      replica {agreement.first_replica}
      {agreement.since && `, ${agreement.since}`}
    </span>
  );
}

function columnsOf(
  replicas: readonly ReplicaSummary[],
  same: boolean,
  mixed: boolean,
): Column<ReplicaSummary>[] {
  const number = (
    title: string,
    of: (summary: Summary) => number | null,
    help?: string,
  ): Column<ReplicaSummary> => ({
    title,
    ...(help ? { help } : {}),
    text: ({ summary }) => (typeof summary === "string" ? NOTHING : figure(of(summary))),
    order: ({ summary }) => (typeof summary === "string" ? -Infinity : (of(summary) ?? -Infinity)),
  });
  const tally = (
    title: string,
    of: (summary: Summary) => number,
    alarming = false,
  ): Column<ReplicaSummary> => ({
    title,
    text: ({ summary }) => (typeof summary === "string" ? NOTHING : count(of(summary))),
    ...(alarming
      ? {
          show: ({ summary }: ReplicaSummary) =>
            typeof summary !== "string" && of(summary) > 0 ? (
              <strong>
                <Sign sign="✖" colour={BAD} /> {count(of(summary))}
              </strong>
            ) : typeof summary === "string" ? (
              NOTHING
            ) : (
              "0"
            ),
        }
      : {}),
    order: ({ summary }) => (typeof summary === "string" ? -1 : of(summary)),
  });
  return [
    {
      title: "replica",
      text: ({ replica }) => (same ? `all ${replicas.length}` : replica < 0 ? NOTHING : String(replica)),
      order: ({ replica }) => replica,
    },
    {
      title: "host:device",
      left: true,
      text: ({ host, device }) => (same ? "" : host ? `${host}:${device}` : "notebook"),
    },
    ...(mixed
      ? [{ title: "array", left: true, text: ({ summary }: ReplicaSummary) => arrayText(summary) }]
      : []),
    number("mean", (summary) => summary.mean, "of the finite elements"),
    number("std", (summary) => summary.std, "of the finite elements"),
    number("min", (summary) => summary.min, "of the finite elements"),
    number("max", (summary) => summary.max, "of the finite elements"),
    number("L2", (summary) => summary.l2, "Euclidean norm of the finite elements"),
    tally("zeros", (summary) => summary.zeros),
    tally("NaN", (summary) => summary.nan, true),
    tally("±Inf", (summary) => summary.inf, true),
    {
      title: "age",
      help: "since it was made or assigned",
      text: ({ age_seconds }) => (age_seconds === null ? NOTHING : timeText(age_seconds * 1e6)),
      order: ({ age_seconds }) => age_seconds ?? -1,
    },
    ...(replicas.some((replica) => replica.note)
      ? [
          {
            title: "note",
            left: true,
            text: ({ note }: ReplicaSummary) => note,
            show: ({ note }: ReplicaSummary) =>
              note && (
                <>
                  <Sign sign="✖" colour={BAD} /> {note}
                </>
              ),
          },
        ]
      : []),
  ];
}

function arrayText(summary: Summary | string): string {
  return typeof summary === "string" ? summary : `${dtypeText(summary.dtype)}[${summary.shape.join(",")}]`;
}
