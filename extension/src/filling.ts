// How views fill the pane that they stand in: charts are higher or lower than they would be by themselves, and what all of
// them leave free has room for their table. In a notebook's output, which is as high as what is in it, nothing of this happens.
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { sumOf } from "./format";
import { clamped } from "./scale";

/** What scrolls, where views stand in panes. */
const PANE = ".wb-pane-body";
/** How high a table is at least. */
const LEAST_TABLE = 100;
/** So often a chart changes before it is seen: whatever surrounds it, that ends. */
const MOST_TIMES = 24;
/** Charts whose height can change. */
export const FILLS = { "data-fills": "" };
/** What only takes the room that is free. */
export const REST = "wb-rest";

/**
 * Tells how many pixels of its pane the view around `box` leaves free: at first, when something in it or the pane has
 * another size, and again once `height` is another one by that; not with each drawing.
 */
function useFree(
  box: RefObject<HTMLElement>,
  tell: (free: number, view: Element) => void,
  height: number,
  there = true,
): void {
  const look = () => {
    const view = there ? box.current?.closest(".wb") : null;
    const pane = view?.closest<HTMLElement>(PANE);
    if (!view || !pane?.clientHeight) return;
    const { bottom } = view.lastElementChild!.getBoundingClientRect();
    const foot = parseFloat(getComputedStyle(view).paddingBottom) + pane.scrollTop;
    const rests = [...view.querySelectorAll<HTMLElement>(`.${REST}`)];
    const taken =
      bottom + foot - pane.getBoundingClientRect().top - sumOf(rests, (rest) => rest.offsetHeight);
    tell(pane.clientHeight - Math.ceil(taken), view);
  };
  const newest = useRef(look);
  newest.current = look;
  useLayoutEffect(look, [height, there]);
  useLayoutEffect(() => {
    // What a view fills its pane with, such as a canvas, need not be lower where what is in it is.
    const around = [PANE, ".wb", ".wb > *"].map((name) => box.current?.closest(name));
    if (!there || !around[0]) return undefined;
    const observer = new ResizeObserver(() => newest.current());
    for (const each of around) if (each) observer.observe(each);
    return () => observer.disconnect();
  }, [there]);
}

/** By how many pixels a chart in `box` is higher than it would be by itself; `least`, below 0, is lower. */
export function useFilling(box: RefObject<HTMLElement>, least: number, most: number, there = true): number {
  const [more, setMore] = useState(0);
  const last = useRef({ more: 0, free: 0, times: 0 });
  const fills = there && least < most;
  useFree(
    box,
    (free, view) => {
      if (box.current!.closest(`.${REST}`)) return;
      const { current: before } = last;
      if (!before.times) requestAnimationFrame(() => (before.times = 0));
      if ((before.times += 1) > MOST_TIMES) return;
      // Each takes its part; what those leave that cannot grow, the others take when they look again. From the second time
      // on by how much less was free for each pixel more: charts stand side by side, or grow in several rows at once.
      const charts = Math.max(1, view.querySelectorAll("[data-fills]").length);
      const change = (before.free - free) / (more - before.more);
      const step = free / (change >= 1 && change < 100 ? change : charts);
      const next = clamped(Math.floor(more + step), least, most);
      if (next !== more) Object.assign(before, { more, free });
      setMore(next);
    },
    more,
    fills,
  );
  return clamped(more, least, most);
}

/** How high each table may be that stands below the charts of a view: 0 where they leave less than a third of their pane. */
export function useRest(box: RefObject<HTMLElement>): number {
  const [height, setHeight] = useState(0);
  useFree(
    box,
    (free, view) => {
      const rests = view.querySelectorAll(`.${REST}`).length;
      const pane = view.closest(PANE)!.clientHeight;
      const rest = box.current!;
      const tables = [...rest.querySelectorAll<HTMLElement>(".wb-scroll")];
      const others = rest.offsetHeight - sumOf(tables, (table) => table.offsetHeight);
      const each = (free / rests - others) / Math.max(1, tables.length);
      setHeight(free > pane / 3 ? Math.max(LEAST_TABLE, Math.floor(each)) : 0);
    },
    height,
  );
  return height;
}
