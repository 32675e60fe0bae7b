// Bus bandwidth over message size, both logarithmic: a band from the 10th to the 90th percentile, fit, measured limit.
import { useRef, useState } from "preact/hooks";
import { category } from "../colours";
import { ChartOrTable } from "../parts/head";
import { ReadOut } from "../parts/plane";
import { numeric, Table, type Columns } from "../parts/table";
import { groupText, replicasText, wording } from "../parts/terms";
import { clamped, logarithmic, logTicks } from "../scale";
import { useRoom, widthOf } from "../parts/width";
import {
  counted,
  dtypeText,
  joined,
  known,
  rateText,
  significant,
  sizeText,
  timeText,
  timeUnit,
} from "../format";
import type { Collectives, Sweep, SweepPoint } from "../models";
import type { View } from "../view";
import { take } from "../parts/small";
import { Nothing } from "../parts/nothing";

const [LOWEST, HIGHEST] = [260, 400];
/** In a pane. */
const [LEAST, MOST] = [180, 640];
const LEFT = 62;
const RIGHT = 28;
const TOP = 12;
const BOTTOM = 34;

export const sweep: View<Collectives> = {
  title: "Bandwidth over size",
  draw({ model }) {
    if (!model.sweeps.length) {
      return (
        <Nothing title="No operation of several sizes yet" code="wb.collectives.sweep(strategy)">
          Bandwidth over size appears here when replicas ran one operation with several sizes. This line
          measures it, and draws it below its cell.
        </Nothing>
      );
    }
    return <Sweeps sweeps={model.sweeps} />;
  },
};

function Sweeps({ sweeps }: { sweeps: readonly Sweep[] }) {
  const [key, setKey] = useState<string | null>(null);
  const index = Math.max(
    0,
    sweeps.findIndex((one) => one.key === key),
  );
  const chosen = sweeps[index]!;
  return (
    <ChartOrTable
      title="Bandwidth over size"
      facts={[
        joined([groupText(chosen.group, chosen.n), chosen.transport]),
        fitText(chosen),
        baselineText(chosen),
      ]}
      chart={<Chart sweep={chosen} colour={category(index)} />}
      table={<Twin sweep={chosen} />}
    >
      <select
        aria-label="Operation"
        value={chosen.key}
        onChange={(event) => setKey(event.currentTarget.value)}
      >
        {sweeps.map((one) => (
          <option key={one.key} value={one.key}>
            {nameOf(one, sweeps)}
          </option>
        ))}
      </select>
    </ChartOrTable>
  );
}

/** What distinguishes it from the others. */
function nameOf(one: Sweep, sweeps: readonly Sweep[]): string {
  const reductions = sweeps.some((two) => two.op === one.op && two.redop !== one.redop);
  const groups = sweeps.some((two) => two.group !== one.group);
  return `${one.op}${reductions ? ` ${one.redop}` : ""} ${dtypeText(one.dtype)}${groups ? ` · ${groupText(one.group)}` : ""}`;
}

function baselineText({ baseline, n }: Sweep): string {
  if (!baseline) return "";
  return `baseline: ${baseline.name}${baseline.n === n ? "" : `, ${replicasText(baseline.n)}`} · ${baseline.transport}`;
}

function fitText({ latency_us, bandwidth }: Sweep): string {
  return latency_us === null || bandwidth === null
    ? "too few sizes for a fit"
    : `fit: latency ${timeText(latency_us)} + size / ${rateText(bandwidth)}`;
}

/** The bus bandwidth of the fit at a size, GB/s; the factor is that of the points. */
export function fittedBusbw(sweep: Sweep, sizeBytes: number): number | null {
  const point = sweep.points.find((one) => one.p50_busbw !== null && one.p50_us > 0);
  if (sweep.latency_us === null || sweep.bandwidth === null || !point) return null;
  const factor = (point.p50_busbw! * point.p50_us * 1000) / point.size_bytes;
  const us = sweep.latency_us + sizeBytes / (sweep.bandwidth * 1000);
  return (factor * sizeBytes) / (us * 1000);
}

function Chart({ sweep, colour }: { sweep: Sweep; colour: string }) {
  const [cursor, setCursor] = useState<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const room = useRoom(box);
  const width = widthOf(room);
  const usual = clamped(0.3 * width, LOWEST, HIGHEST);
  const height = room.height || usual;
  const ghost = ghostOf(sweep);
  const points = sweep.points.filter((point) => point.p50_busbw !== null);
  const sizes = points.map((point) => point.size_bytes);
  const rates = points.flatMap((point) => [point.p10_busbw!, point.p50_busbw!, point.p90_busbw!]);
  rates.push(...ghost.map((point) => point.p50_busbw!));
  if (sweep.limit !== null) rates.push(sweep.limit);
  const x = logarithmic([Math.min(...sizes), Math.max(...sizes)], [LEFT, width - RIGHT]);
  const [low, high] = [Math.min(...rates) / 1.3, Math.max(...rates) * 1.3];
  const y = logarithmic([low, high], [height - BOTTOM, TOP]);
  const line = (through: readonly SweepPoint[], of: (point: SweepPoint) => number) =>
    pathOf(through.map((point) => [x(point.size_bytes), y(of(point))]));
  const back = line([...points].reverse(), (point) => point.p10_busbw!).replace("M", "L");
  const places = Array.from({ length: 33 }, (_, step) => {
    const size = sizes[0]! * (sizes.at(-1)! / sizes[0]!) ** (step / 32);
    const rate = fittedBusbw(sweep, size);
    const inside = rate !== null && rate >= low && rate <= high;
    return inside ? ([x(size), y(rate)] as const) : null;
  });
  const fit = known(places);
  const at = cursor === null ? null : points[cursor];

  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (event.key === "Home") setCursor(0);
    else if (event.key === "End") setCursor(points.length - 1);
    else if (event.key === "Escape") setCursor(null);
    else if (step)
      setCursor(clamped((cursor ?? (step > 0 ? -1 : points.length)) + step, 0, points.length - 1));
    else return;
    take(event);
  };
  return (
    <ReadOut
      box={box}
      label={`Bandwidth of ${sweep.op} at ${counted(points.length, "size")}`}
      hint={`line: median, band: 10th to 90th percentile, dashes: fit${ghost.length ? ", thick grey line: baseline" : ""} · arrow keys or pointer: one size`}
      text={at ? pointText(at, sweep) : ""}
      onKeyDown={onKeyDown}
      heights={[LEAST, usual, MOST]}
    >
      <svg viewBox={`0 0 ${width} ${height}`} aria-hidden onMouseLeave={() => setCursor(null)}>
        {logTicks(low, high).map((tick) => (
          <g key={tick}>
            <line x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} stroke="var(--wb-line)" />
            <text x={LEFT - 6} y={y(tick) + 4} text-anchor="end">
              {rateText(tick)}
            </text>
          </g>
        ))}
        {spaced(sizes, Math.max(2, Math.floor(width / 70))).map((size) => (
          <text key={size} x={x(size)} y={height - BOTTOM + 16} text-anchor="middle">
            {sizeText(size)}
          </text>
        ))}
        {ghost.length > 0 && (
          <path
            class="wb-ghost"
            d={line(ghost, (point) => point.p50_busbw!)}
            fill="none"
            stroke="var(--wb-quiet)"
            stroke-width="5"
            stroke-linecap="round"
            opacity="0.45"
          />
        )}
        <path d={`${line(points, (point) => point.p90_busbw!)}${back}Z`} fill={colour} opacity="0.2" />
        <path d={line(points, (point) => point.p50_busbw!)} fill="none" stroke={colour} stroke-width="2" />
        {fit.length > 0 && (
          <path d={pathOf(fit)} fill="none" stroke="var(--wb-text)" stroke-dasharray="5 4" />
        )}
        {sweep.limit !== null && (
          <g>
            <line
              x1={LEFT}
              x2={width - RIGHT}
              y1={y(sweep.limit)}
              y2={y(sweep.limit)}
              stroke="var(--wb-text)"
              stroke-dasharray="1 3"
              stroke-width="1.5"
            />
            <text class="wb-strong" x={width - RIGHT} y={y(sweep.limit) - 4} text-anchor="end">
              measured limit {rateText(sweep.limit)}
            </text>
          </g>
        )}
        {points.map((point, index) => (
          <circle
            key={point.size_bytes}
            cx={x(point.size_bytes)}
            cy={y(point.p50_busbw!)}
            r={index === cursor ? 6 : 3.5}
            fill={colour}
            stroke={index === cursor ? "var(--wb-text)" : "none"}
            stroke-width="2"
            onMouseEnter={() => setCursor(index)}
          />
        ))}
        <text x={(LEFT + width) / 2} y={height - 3} text-anchor="middle">
          message size
        </text>
      </svg>
    </ReadOut>
  );
}

/** A line through some places, in SVG's notation. */
function pathOf(places: readonly (readonly [x: number, y: number])[]): string {
  return places.map(([x, y], index) => `${index ? "L" : "M"}${x} ${y}`).join("");
}

/** The points of the baseline that are in the chart. */
export function ghostOf({ baseline, points }: Sweep): SweepPoint[] {
  const sizes = points.map((point) => point.size_bytes);
  const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
  return (baseline?.points ?? []).filter(
    (point) => point.p50_busbw !== null && point.size_bytes >= low && point.size_bytes <= high,
  );
}

/** How many times as fast as the baseline at a size, or null. */
export function timesAsFast({ baseline }: Sweep, point: SweepPoint): number | null {
  const before = baseline?.points.find((one) => one.size_bytes === point.size_bytes);
  return before && point.p50_us > 0 ? before.p50_us / point.p50_us : null;
}

function pointText(point: SweepPoint, sweep: Sweep): string {
  const fit = fittedBusbw(sweep, point.size_bytes);
  const ratio = timesAsFast(sweep, point);
  return joined([
    `${sizeText(point.size_bytes)}: ${wording("bandwidth", "busbw")} ${rateText(point.p50_busbw)} (${rateText(point.p10_busbw)} to ${rateText(point.p90_busbw)})`,
    `transfer ${timeText(point.p50_us)}`,
    counted(point.samples, "sample"),
    fit === null ? "" : `fit ${rateText(fit)}`,
    ratio === null ? "" : `${significant(ratio)} × as fast as ${sweep.baseline!.name}`,
  ]);
}

/** At most `most` of the values, evenly chosen, the first and the last among them. */
function spaced(values: readonly number[], most: number): number[] {
  const every = Math.max(1, Math.ceil((values.length - 1) / (most - 1)));
  return values.filter((_, index) => index % every === 0);
}

function Twin({ sweep }: { sweep: Sweep }) {
  const unit = timeUnit(sweep.points.map((point) => point.p50_us));
  const time = (title: string, percentile: number, rank: number, of: (point: SweepPoint) => number) =>
    numeric(`${title} ${unit.name}`, of, (us) => significant(us / unit.us), {
      rank,
      term: `p${percentile} ${unit.name}`,
      help: "of the transfer times",
    });
  const rate = (title: string, term: string, rank: number, of: (point: SweepPoint) => number | null) =>
    numeric(title, of, significant, { rank, term, help: "GB/s" });
  const columns: Columns<SweepPoint> = [
    numeric("size", (point) => point.size_bytes, sizeText),
    numeric("samples", (point) => point.samples, String, { rank: 6, help: "how many" }),
    time("fast", 10, 4, (point) => point.p10_us),
    time("median", 50, 0, (point) => point.p50_us),
    time("slow", 90, 3, (point) => point.p90_us),
    rate("low bandwidth", "busbw p10", 5, (point) => point.p10_busbw),
    rate("bandwidth", "busbw p50", 0, (point) => point.p50_busbw),
    rate("high bandwidth", "busbw p90", 5, (point) => point.p90_busbw),
    rate("fit", "", 2, (point) => fittedBusbw(sweep, point.size_bytes)),
    sweep.baseline &&
      numeric("× baseline", (point) => timesAsFast(sweep, point), significant, {
        rank: 1,
        help: `median time of ${sweep.baseline.name} over that of this sweep; above 1 this one is faster`,
      }),
  ];
  return (
    <Table
      label={`Bandwidth of ${sweep.op} by size, GB/s`}
      columns={columns}
      rows={sweep.points}
      keyOf={(point) => point.size_bytes}
    />
  );
}
