// How wide a chart may be: as wide as what it stands in, also after that has changed.
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

const LEAST = 240;
const UNKNOWN = 640;

/** The width of an element in CSS pixels. */
export function useWidth(box: RefObject<HTMLElement>): number {
  const [width, setWidth] = useState(UNKNOWN);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = () => setWidth(Math.max(LEAST, Math.floor(element.clientWidth) || UNKNOWN));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}
