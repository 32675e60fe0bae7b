// How long ago something was, updated while it is visible.
import { useEffect, useState } from "preact/hooks";
import { ageText } from "../format";

const TICK_MS = 1000;
const ticking = new Set<() => void>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Calls `run` once a second, by one timer for the whole page. */
function everySecond(run: () => void): () => void {
  ticking.add(run);
  timer ??= setTimeout(tick, TICK_MS);
  return () => ticking.delete(run);
}

function tick(): void {
  timer = undefined;
  if (!document.hidden) for (const each of [...ticking]) each();
  if (ticking.size) timer ??= setTimeout(tick, TICK_MS);
}

/** The present age of what was `seconds` old at the moment `at`, in seconds since 1970; 0 if that is unknown. */
export function ageNow(seconds: number, at: number): number {
  // The job may be on another machine, whose clock is ahead.
  return seconds + (at > 0 ? Math.max(0, Date.now() / 1000 - at) : 0);
}

export function Age({ seconds, at }: { seconds: number; at: number }) {
  const [, tick] = useState(0);
  useEffect(() => everySecond(() => tick((count) => count + 1)), []);
  return <>{ageText(ageNow(seconds, at))}</>;
}
