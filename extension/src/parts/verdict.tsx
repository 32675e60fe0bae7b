// The most important statement about a run or a view: a sentence, its evidence or the remedy, and a link to the view
// that explains it.
import type { ComponentChildren } from "preact";
import { capitalized } from "../format";
import type { Verdict as Told } from "../models";
import type { ViewName } from "../view";
import { SeveritySign } from "./icons";
import { Button } from "./small";

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

interface CardProps {
  severity: string;
  sentence: string;
  role?: "status" | "alert";
  children?: ComponentChildren;
}

/** A sentence on a ground that shows how bad it is. */
export function Card({ severity, sentence, role = "status", children }: CardProps) {
  return (
    <div class="wb-verdict" data-severity={severity}>
      <SeveritySign severity={severity} />
      <div role={role}>
        <h4>{sentence}</h4>
        {children}
      </div>
    </div>
  );
}

/** The state, and the remedy if something is wrong. */
export function Verdict({
  sentence,
  advice,
  children,
}: {
  sentence: string;
  advice: string;
  children?: ComponentChildren;
}) {
  return (
    <Card severity={advice ? "warning" : "good"} sentence={sentence}>
      {advice && (
        <p>
          {capitalized(advice)}. {children}
        </p>
      )}
    </Card>
  );
}

interface Props {
  verdict: Told;
  open(view: ViewName): void;
  /** The view around it, which needs no link. */
  here?: ViewName;
}

export function VerdictCard({ verdict, open, here }: Props) {
  const link = verdict.link !== here && Object.hasOwn(LINKS, verdict.link) && LINKS[verdict.link];
  return (
    <Card severity={verdict.severity} sentence={verdict.sentence}>
      <p>
        {verdict.evidence && `${capitalized(verdict.evidence)}. `}
        {link && (
          <Button class="wb-link" onClick={() => open(verdict.link as ViewName)}>
            {link} →
          </Button>
        )}
      </p>
    </Card>
  );
}
