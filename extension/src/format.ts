// Numbers as all views print them; the twin of workbench/telemetry/formatting.py.

/** Printed where a number has no meaning. */
export const NOTHING = "–";

const DTYPES: Record<string, string> = {
  float16: "f16",
  float32: "f32",
  float64: "f64",
  bfloat16: "bf16",
  complex64: "c64",
  complex128: "c128",
};

// Kept, because creating one takes far longer than formatting a number.
const WHOLE = new Intl.NumberFormat("en-US");
const THREE = new Intl.NumberFormat("en-US", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });

/** The number with 3 significant digits, never in exponent form; whole from 100 on, with commas from 1,000 on. */
export function significant(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return NOTHING;
  const whole = value === 0 || Math.abs(value) >= 99.95;
  return whole ? count(Math.round(value)) : THREE.format(value);
}

/** A value of an array with 3 significant digits; with an exponent if it is very small or large. */
export function figure(value: number | null): string {
  if (value === null) return NOTHING;
  const size = Math.abs(value);
  return size === 0 || (size >= 1e-3 && size < 1e6) ? significant(value) : value.toExponential(2);
}

/** A count with thin groups of three digits. */
export function count(value: number | null): string {
  return value === null ? NOTHING : WHOLE.format(value);
}

/** A size in binary units. */
export function sizeText(bytes: number | null): string {
  if (bytes === null) return NOTHING;
  let value = bytes;
  let unit = "B";
  for (unit of ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]) {
    if (value < 1024 || unit === "PiB") break;
    value /= 1024;
  }
  return `${Number.isInteger(value) ? value : significant(value)} ${unit}`;
}

/** Memory in use, in whole MiB, because it is not known more exactly. */
export function memoryText(bytes: number | null): string {
  if (bytes === null) return NOTHING;
  return sizeText(bytes >= 1 << 20 ? Math.round(bytes / (1 << 20)) * (1 << 20) : bytes);
}

/** A bandwidth in decimal units. */
export function rateText(gigabytesPerSecond: number | null): string {
  if (gigabytesPerSecond === null) return NOTHING;
  let value = gigabytesPerSecond;
  let unit = "GB/s";
  for (unit of ["GB/s", "MB/s", "kB/s"]) {
    if (value >= 1 || unit === "kB/s") break;
    value *= 1000;
  }
  return `${significant(value)} ${unit}`;
}

export interface TimeUnit {
  name: string;
  us: number;
}

/** The best unit for a column of times. The median decides, so that one outlier does not. */
export function timeUnit(timesUs: readonly number[]): TimeUnit {
  const middle = medianOf(timesUs);
  if (middle < 1000) return { name: "µs", us: 1 };
  return middle < 1e6 ? { name: "ms", us: 1e3 } : { name: "s", us: 1e6 };
}

/** A single time, in its own unit. */
export function timeText(us: number | null): string {
  if (us === null) return NOTHING;
  const unit = timeUnit([us]);
  return `${significant(us / unit.us)} ${unit.name}`;
}

export function secondsText(seconds: number): string {
  return timeText(1e6 * seconds);
}

/** How long ago, to two digits. */
export function ageText(seconds: number | null): string {
  if (seconds === null) return NOTHING;
  const units = [
    ["s", 1, 120],
    ["m", 60, 7200],
    ["h", 3600, 172_800],
    ["d", 86_400, Infinity],
  ] as const;
  const [name, size] = units.find(([, , most]) => seconds < most)!;
  const value = seconds / size;
  return `${value.toFixed(Number(value.toFixed(1)) < 10 ? 1 : 0)}${name}`;
}

/** A percentage for people: whole, and never a wrong 0 or 100; its sign stays on the number's line. */
export function percent(value: number | null): string {
  return value === null ? NOTHING : `${wholePercent(value)}\u202f%`;
}

/** The number of a percentage, whose sign stands elsewhere. */
export function wholePercent(value: number): string {
  if (value > 0 && value < 1) return "<1";
  return value > 99 && value < 100 ? ">99" : count(Math.round(value));
}

/** A short name of an element type: "f32", "i64", "u8", "bool". */
export function dtypeText(dtype: string): string {
  const known = DTYPES[dtype];
  if (known) return known;
  return dtype.replace(/^uint/, "u").replace(/^int/, "i");
}

/** The non-empty ones among some texts, joined. */
export function joined(
  texts: readonly (string | number | false | null | undefined)[],
  between = " · ",
): string {
  return texts.filter(Boolean).join(between);
}

/** The known ones among some values. */
export function known<T>(values: readonly (T | null)[]): T[] {
  return values.filter((value) => value !== null);
}

/** The sum of what values count. */
export function sumOf<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((sum, value) => sum + of(value), 0);
}

/** The mean of some values; null of none. */
export function meanOf(values: readonly number[]): number | null {
  return values.length ? sumOf(values, (value) => value) / values.length : null;
}

/** The median of some values, or the higher one of two medians; 0 for none. */
export function medianOf(values: readonly number[]): number {
  return ascending(values)[Math.floor(values.length / 2)] ?? 0;
}

/** The values in their order. */
export function ascending(values: readonly number[]): number[] {
  return [...values].sort((one, other) => one - other);
}

/** A text as the start of a sentence; a name of code stays unchanged. */
export function capitalized(text: string): string {
  return /^\w+[.:([]/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);
}

/** The moment at which something was written, to seconds. */
export function momentText(iso: string): string {
  return iso.replace("T", " ").slice(0, 19);
}

/** "1 replica", "4 replicas". */
export function counted(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** Numbers with runs written as first–last: "0–2, 5". */
export function runsOf(numbers: readonly number[]): string {
  const parts: string[] = [];
  const ordered = ascending(numbers);
  for (let i = 0; i < ordered.length;) {
    let j = i;
    while (j + 1 < ordered.length && ordered[j + 1] === ordered[j]! + 1) j += 1;
    parts.push(j > i + 1 ? `${ordered[i]}–${ordered[j]}` : ordered.slice(i, j + 1).join(", "));
    i = j + 1;
  }
  return parts.join(", ");
}
