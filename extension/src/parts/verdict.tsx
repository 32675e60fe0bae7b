// The one sentence that says how things stand, loud where something is wrong, with what helps.
import { capitalized } from "../format";
import { Sign } from "./status";

export function Verdict({ sentence, advice }: { sentence: string; advice: string }) {
  const loud = advice !== "";
  return (
    <div class="wb-alert" data-loud={loud ? "yes" : "no"} role="status">
      {loud && <Sign />}
      <div>
        <strong>{sentence}</strong>
        {loud && <div>{capitalized(advice)}.</div>}
      </div>
    </div>
  );
}
