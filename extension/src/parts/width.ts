// The size of charts and tables: what their surroundings allow, also after that changes.
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

const LEAST = 240;
const UNKNOWN = 640;

export interface Room {
  width: number;
  height: number;
}

const NO_ROOM: Room = { width: 0, height: 0 };

/** The room inside of an element in CSS pixels, 0 if it is not laid out; `there`: whether it is in the page. */
export function useRoom(box: RefObject<HTMLElement>, there = true): Room {
  const [room, setRoom] = useState(NO_ROOM);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = () => {
      const { clientWidth: width, clientHeight: height } = element;
      setRoom((now) => (now.width === width && now.height === height ? now : { width, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [there]);
  return room;
}

/** The width of a chart in an element that has `room`. */
export function widthOf({ width }: Room): number {
  return Math.max(LEAST, width || UNKNOWN);
}

/** The width of a chart in an element. */
export function useWidth(box: RefObject<HTMLElement>): number {
  return widthOf(useRoom(box));
}
