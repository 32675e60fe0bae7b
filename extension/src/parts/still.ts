// Something that goes on, as it was when somebody stopped to look at it.
import { useRef } from "preact/hooks";
import { known } from "../format";

/**
 * The newest of what is drawn again and again, or while it is `still` the first one since that `has` what is looked at;
 * where that changes to something that only the newest one has, the newest.
 */
export function useStill<T>(newest: T, still: boolean, has: (one: T) => boolean): T {
  const kept = useRef<T | null>(null);
  kept.current = still ? (known([kept.current, newest]).find(has) ?? null) : null;
  return kept.current ?? newest;
}
