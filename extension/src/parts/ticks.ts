// Round numbers along a logarithmic axis.

/** 1, 2 and 5 of each power of ten in a range; fewer where these would be many. */
export function logTicks(low: number, high: number): number[] {
  const decades = Math.log10(high / low);
  const factors = decades > 3 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5];
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    ticks.push(...factors.map((factor) => factor * 10 ** power));
  }
  return ticks.filter((tick) => tick >= low && tick <= high);
}

/** Those of ascending ticks whose labels, centred on them, do not run into one another. */
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
