// The colour of a replica, by its lateness.
import { ascending, known } from "../format";
import type { GroupView } from "../models";

const LEVELS = 6;

/**
 * The number of a lateness's colour: the first one, close to the ground, if the clocks cannot distinguish it from none.
 */
export function levels({ late_us, enough_us }: GroupView["lateness"]): (us: number) => number {
  const { peak } = scaleOf(late_us);
  return (us) =>
    us < enough_us ? 0 : 1 + Math.min(LEVELS - 2, Math.floor((LEVELS - 1) * Math.min(1, us / peak)));
}

/** The colours from on time to late. */
export function Levels() {
  return (
    <span class="wb-levels" aria-hidden>
      {Array.from({ length: LEVELS }, (_, level) => (
        <i key={level} style={{ background: `var(--wb-late-${level})` }} />
      ))}
    </span>
  );
}

/**
 * Where the colours end. A replica that is late in a tenth of the steps or more is seen as that; a step in which all
 * were slow once, such as the first, must not turn everything else dark.
 */
export function scaleOf(late: GroupView["lateness"]["late_us"]): { peak: number; most: number } {
  const rows = late.map((row) => ascending(known(row)));
  const usual = (row: number[]) =>
    row[row.length < 3 ? row.length - 1 : Math.floor(0.9 * (row.length - 1))] ?? 0;
  const most = Math.max(1e-9, ...rows.map((row) => row.at(-1) ?? 0));
  const peak = Math.max(...rows.map(usual), 0);
  return { peak: peak > 0 ? peak : most, most };
}
