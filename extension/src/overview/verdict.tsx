// What is to be said of a run: a sentence, its evidence, and a way to the view that explains it.
import { capitalized } from "../format";
import type { Verdict } from "../models";
import type { ViewName } from "../view";
import { SeveritySign } from "./icons";
import { Button } from "../parts/small";

const LINKS: Partial<Record<string, string>> = {
  lanes: "Show the lanes",
  heat_map: "Show the steps",
  log: "Show the log",
  stuck: "Show who waits",
  values: "Show the values",
  sweep: "Show the data rate",
  input: "Show the input",
  dataset_sharding: "Show who reads what",
  devices: "Show the devices",
};

interface Props {
  verdict: Verdict;
  open(view: ViewName): void;
  /** The view around it, to which it needs no way. */
  here?: ViewName;
}

export function VerdictCard({ verdict, open, here }: Props) {
  const link = verdict.link !== here && Object.hasOwn(LINKS, verdict.link) && LINKS[verdict.link];
  return (
    <div class="wb-verdict" data-severity={verdict.severity}>
      <SeveritySign severity={verdict.severity} />
      <div role="status">
        <h4>{verdict.sentence}</h4>
        <p>
          {verdict.evidence && `${capitalized(verdict.evidence)}. `}
          {link && (
            <Button class="wb-link" onClick={() => open(verdict.link as ViewName)}>
              {link} →
            </Button>
          )}
        </p>
      </div>
    </div>
  );
}
