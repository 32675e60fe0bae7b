// All elements that a replica reads in a step, on request: shuffled ones are too many for a line of text.
import { counted, joined } from "../format";
import type { DatasetSharding } from "../models";
import { Button, Note, Quiet } from "../parts/small";
import type { Context } from "../view";
import { elementsNote } from "./progress";

export function Listed({
  model: { listed, progress },
  context,
}: {
  model: DatasetSharding;
  context: Context;
}) {
  if (!listed) return null;
  const { step, replica, rows, runs, hidden } = listed;
  const title = `Elements of replica ${replica} in step ${step}`;
  return (
    <section class="wb-listed" aria-label={title}>
      <div class="wb-head">
        <h4>{title}</h4>
        <Quiet>
          {joined([`${counted(rows, "row")}, in the order in which they are read`, elementsNote(progress)])}
        </Quiet>
        {context.ask && (
          <Button
            aria-label="Close the list"
            onClick={() => context.ask?.({ kind: "list", step: -1, replica: -1 })}
          >
            ×
          </Button>
        )}
      </div>
      <p tabIndex={0}>{runs.join(", ")}</p>
      {hidden > 0 && <Note>and {counted(hidden, "more run")} of elements</Note>}
    </section>
  );
}
