// Something that goes on, as it was when somebody stopped to look at it.
import { useRef } from "preact/hooks";

/** The newest of what is drawn again and again, or while it is `still` the first one since that was `worth` keeping. */
export function useStill<T>(newest: T, still: boolean, worth = true): T {
  const kept = useRef<T | null>(null);
  kept.current = still ? (kept.current ?? (worth ? newest : null)) : null;
  return kept.current ?? newest;
}
