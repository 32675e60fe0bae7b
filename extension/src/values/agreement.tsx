// The line about a value before its figures: what it is, on how many replicas, and whether copies agree.
import type { ComponentChildren } from "preact";
import { counted, joined } from "../format";
import type { Agreement, InspectedValue } from "../models";
import { Button, Quiet } from "../parts/small";
import { StatusWord } from "../parts/status";
import { wording } from "../parts/terms";
import { Verdict } from "../parts/verdict";
import type { Steps } from "../selection";

/** Up to this many types and shapes are named. */
const MOST_ARRAYS = 4;

interface Props {
  value: InspectedValue;
  /** The different types and shapes. */
  arrays: readonly string[];
  steps: Steps;
  children: ComponentChildren;
}

export function AgreementFacts({ value: { agreement, replicas }, arrays, steps, children }: Props) {
  return (
    <>
      {agreement?.sentence && <Verdict sentence={agreement.sentence} advice={agreement.evidence!} />}
      <div class="wb-head">
        {arrays.slice(0, MOST_ARRAYS).map((text) => (
          <span key={text} class="wb-pill">
            {text}
          </span>
        ))}
        {replicas.length > 1 && <Quiet>{counted(replicas.length, "replica")}</Quiet>}
        {agreement ? (
          <AgreementText agreement={agreement} steps={steps} />
        ) : (
          replicas.length > 1 && <Quiet>not synchronised</Quiet>
        )}
        {children}
      </div>
    </>
  );
}

function AgreementText({ agreement, steps }: { agreement: Agreement; steps: Steps }) {
  if (agreement.in_sync) {
    const hash = `sha ${agreement.sha256.slice(0, 8)}…, max|Δ| = 0`;
    return (
      <span title={hash}>
        <StatusWord word="in sync" /> <Quiet>{wording("all copies agree", hash)}</Quiet>
      </span>
    );
  }
  // Recordings of earlier versions have no sentence.
  const { sentence, step = -1, first_replica, since } = agreement;
  return (
    <span>
      <StatusWord word="diverged" />{" "}
      {!sentence
        ? joined([`replica ${first_replica}`, since])
        : step >= 0 && (
            <Button class="wb-link" onClick={() => steps.pick(step)}>
              Show step {step} →
            </Button>
          )}
    </span>
  );
}
