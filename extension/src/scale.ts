// From numbers to places on a chart and back. d3-scale's `scaleLinear` and `scaleLog` would add 28 kB to the bundle,
// with formats and dates.

export interface Scale {
  (value: number): number;
  invert(place: number): number;
}

/** Linear between each two of ascending numbers; beyond the outermost, as between the last two. */
export function linear(domain: readonly number[], range: readonly number[]): Scale {
  const scale = (value: number) => between(domain, range, value);
  return Object.assign(scale, { invert: (place: number) => between(range, domain, place) });
}

/** Linear in the logarithm. */
export function logarithmic(domain: [number, number], range: [number, number]): (value: number) => number {
  const scale = linear(domain.map(Math.log), range);
  return (value) => scale(Math.log(value));
}

function between(from: readonly number[], to: readonly number[], value: number): number {
  let low = 0;
  let high = from.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (value < from[middle]!) high = middle;
    else low = middle;
  }
  const [a, b, c, d] = [from[low]!, from[high]!, to[low]!, to[high]!];
  return c + (d - c) * (a === b ? 0.5 : (value - a) / (b - a));
}

/** The number of a range that is closest to a value. */
export function clamped(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(high, value));
}

/** Round numbers in a range, about `count` of them. */
export function roundTicks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(low / step);
  const last = Math.floor(high / step);
  // By counting and rounding, because adding steps up would give 0.30000000000000004.
  return Array.from({ length: last - first + 1 }, (_, index) =>
    Number(((first + index) * step).toPrecision(12)),
  );
}

/** 1, 2 and 5 of each power of ten in a range; fewer if these would be many. */
export function logTicks(low: number, high: number): number[] {
  const decades = Math.log10(high / low);
  const factors = decades > 3 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5];
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    ticks.push(...factors.map((factor) => factor * 10 ** power));
  }
  return ticks.filter((tick) => tick >= low && tick <= high);
}

/** Those of ascending ticks whose labels, centred on them, do not overlap. */
export function apart(
  ticks: readonly number[],
  at: (tick: number) => number,
  width: (tick: number) => number,
): number[] {
  let end = -Infinity;
  return ticks.filter((tick) => {
    const fits = at(tick) - width(tick) / 2 >= end;
    if (fits) end = at(tick) + width(tick) / 2;
    return fits;
  });
}

/** The colour at a share from 0 to 1 of colours such as "440154", as `#rrggbb`. */
export function blended(colours: readonly string[], share: number): string {
  const at = clamped(share, 0, 1) * (colours.length - 1);
  const low = Math.min(Math.floor(at), colours.length - 2);
  const channel = (colour: string, index: number) => parseInt(colour.slice(2 * index, 2 * index + 2), 16);
  return `#${[0, 1, 2]
    .map((index) => {
      const [one, other] = [channel(colours[low]!, index), channel(colours[low + 1]!, index)];
      return Math.round(one + (other - one) * (at - low))
        .toString(16)
        .padStart(2, "0");
    })
    .join("")}`;
}
