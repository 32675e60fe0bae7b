// How wide a chart or a table may be: as wide as what it stands in, also after that has changed.
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

const LEAST = 240;
const UNKNOWN = 640;

/** The width inside of an element in CSS pixels, or 0 where it is not laid out; `there`: whether it is in the page. */
export function useRoom(box: RefObject<HTMLElement>, there = true): number {
  const [room, setRoom] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = () => setRoom(Math.floor(element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [there]);
  return room;
}

/** The width of a chart in an element. */
export function useWidth(box: RefObject<HTMLElement>): number {
  return Math.max(LEAST, useRoom(box) || UNKNOWN);
}
