// What panes show while there is nothing to draw: how to begin a run, the frame of what will come, or a line of code.
import { Clipboard } from "@jupyterlab/apputils";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Nothing } from "../../parts/nothing";
import type { Channel } from "../server/messages";

const CODE = "cluster = wb.connect(replicas=4)";

/** For a pane whose content does not come by itself: the line of code that provides it. */
export const LINES: Partial<Record<Channel, string>> = {
  values: "wb.inspect(value)",
  array_sharding: "wb.explain_sharding(value)",
  dataset_sharding: "wb.explain_sharding(dataset)",
  input: "dataset.explain()",
  data_service: "wb.data.service.start(cluster)",
  servers: "wb.distribute.ParameterServerStrategy(servers=1)",
};

/** With such a line of code. */
export function nothingYet(trans: TranslationBundle, line: string) {
  return (
    <Nothing title={trans.__("Nothing to show yet")} code={line} label={trans.__("Insert this line")}>
      {trans.__("Run this line in the notebook, and this pane fills by itself.")}
    </Nothing>
  );
}

/** With the line that creates a cluster, and what it does in a notebook. */
export function noRun(trans: TranslationBundle, insert: (code: string) => void, openRuns: () => void) {
  return (
    <Nothing
      title={trans.__("Nothing is running yet")}
      code={CODE}
      actions={
        <>
          <button type="button" class="wb-filled" onClick={() => insert(`import workbench as wb\n\n${CODE}`)}>
            {trans.__("Insert this line")}
          </button>
          {/* Not the browser's clipboard, which pages without TLS do not have. */}
          <button type="button" onClick={() => Clipboard.copyToSystem(CODE)}>
            {trans.__("Copy")}
          </button>
          <button type="button" onClick={openRuns}>
            {trans.__("Open a recorded run")}
          </button>
        </>
      }
    >
      {trans.__(
        "Start workers in a notebook and this pane fills by itself: what each replica does, who is late, whether numbers are finite.",
      )}
    </Nothing>
  );
}

/** The frame of the overview, without content. */
export function skeleton() {
  return (
    <div class="wb-page wb-skeleton" aria-hidden="true">
      {["verdict", "figures", "module", "module"].map((card, index) => (
        <section key={index} class={`wb-${card}`}>
          <i />
          <i />
          <i />
        </section>
      ))}
    </div>
  );
}
