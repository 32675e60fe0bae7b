// The history of rates, as far as a view has seen them.
import { useRef } from "preact/hooks";
import { significant } from "../format";
import { Spark } from "./marks";

const REMEMBERED = 60;
type Rates = ReadonlyMap<string, readonly number[]>;

/** The last rates by key; `now` has this model's. */
export function useRates(model: object, now: () => [string, number][]): Rates {
  const seen = useRef({ model: null as object | null, rates: new Map() as Rates });
  if (seen.current.model !== model) {
    const before = seen.current.rates;
    const rates = new Map<string, readonly number[]>();
    for (const [key, rate] of now()) rates.set(key, [...(before.get(key) ?? []), rate].slice(-REMEMBERED));
    seen.current = { model, rates };
  }
  return seen.current.rates;
}

/** A line through them, once there are several. */
export function Course({ rates, label }: { rates: readonly number[] | undefined; label: string }) {
  return rates && rates.length > 1 ? <Spark values={rates} label={label} /> : null;
}

export function perSecond(rate: number): string {
  return `${significant(rate)}/s`;
}
