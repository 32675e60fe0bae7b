// Small marks in table cells and legends; the number is always beside them.
import { replicaColour, sequential } from "../colours";
import { clamped } from "../scale";
import { wording } from "./terms";

/** A bar for a share from 0 to 1. */
export function Bar({ share, colour }: { share: number; colour?: string }) {
  const width = `${Math.round(100 * clamped(share, 0, 1))}%`;
  return (
    <span class="wb-bar" aria-hidden style={{ color: colour }}>
      <i style={{ width }} />
    </span>
  );
}

interface SparkProps {
  values: readonly (number | null)[];
  label: string;
  /** The top of the scale; by default the largest value. */
  top?: number;
  width?: number;
  /** Columns from the ground, as in a histogram, instead of a line. */
  columns?: boolean;
}

/** The history of a few values as a line, from zero. */
export function Spark({ values, label, top, width = 72, columns = false }: SparkProps) {
  const height = 16;
  const peak = top ?? Math.max(...values.map((value) => value ?? 0), 0);
  const y = (value: number) => height - 1 - (peak > 0 ? Math.min(1, value / peak) : 0) * (height - 2);
  const step = (width - 2) / Math.max(1, columns ? values.length : values.length - 1);
  let path = "";
  values.forEach((value, index) => {
    if (value === null) return;
    const x = 1 + index * step;
    if (columns)
      path += `M${x.toFixed(1)} ${height}V${y(value).toFixed(1)}h${(step - 0.5).toFixed(1)}V${height}Z`;
    else path += `${index && values[index - 1] !== null ? "L" : "M"}${x.toFixed(1)} ${y(value).toFixed(1)}`;
  });
  return (
    <svg class="wb-spark" role="img" aria-label={label} width={width} height={height}>
      <path
        d={path}
        fill={columns ? "currentColor" : "none"}
        stroke={columns ? "none" : "currentColor"}
        stroke-width="1.25"
        opacity="0.85"
      />
    </svg>
  );
}

/** The colours of a scale from its low to its high end. */
export function Ramp() {
  return (
    <svg aria-hidden width="140" height="10" viewBox="0 0 140 10">
      {Array.from({ length: 35 }, (_, index) => (
        <rect key={index} x={4 * index} width={4} height={10} fill={sequential(index / 34)} />
      ))}
    </svg>
  );
}

/** A replica, with its colour. */
export function ReplicaName({ replica }: { replica: number }) {
  return (
    <b>
      <Key colour={replicaColour(replica)} name={`${wording("replica ", "r")}${replica}`} />
    </b>
  );
}

/** A coloured square with its name. */
export function Key({ colour, name }: { colour: string; name: string }) {
  return (
    <span>
      <span class="wb-swatch" aria-hidden style={{ background: colour }} />
      {name}
    </span>
  );
}
