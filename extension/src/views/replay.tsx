// A recorded run: everything that was recorded, a page for each view, and the choice of steps.
import { useState } from "preact/hooks";
import { Exportable } from "../export/scope";
import { Head } from "../parts/head";
import { Tabs } from "../parts/tabs";
import { count, counted, momentText, secondsText } from "../format";
import type { Replay } from "../models";
import type { Context, View } from "../view";
import { arraySharding } from "./array_sharding";
import { collectives } from "./collectives";
import { dataService } from "./data_service";
import { datasetSharding } from "./dataset_sharding";
import { devices } from "./devices";
import { input } from "./input";
import { servers } from "./servers";
import { overview } from "./overview";
import { topology } from "./topology";
import { values } from "./values";
import { Button, Note, Quiet } from "../parts/small";

/** The parts of a model that have a page each, with the name of its tab. */
const PAGES = {
  overview: ["Overview", overview],
  collectives: ["Collectives", collectives],
  topology: ["Topology", topology],
  devices: ["Devices", devices],
  values: ["Values", values],
  array_sharding: ["Array", arraySharding],
  dataset_sharding: ["Dataset", datasetSharding],
  input: ["Input", input],
  data_service: ["Data service", dataService],
  servers: ["Servers", servers],
} as const;

export const replay: View<Replay> = {
  title: "Recorded run",
  draw({ model, context }) {
    // Nobody can provide more than was recorded.
    const looking = { ...context, ask: undefined };
    const pages = (Object.keys(PAGES) as Part[]).flatMap((view) => {
      const [name, drawn] = PAGES[view] as readonly [string, View<never>];
      const shown = view === "overview" ? model.collectives : model[view];
      const { title } = drawn;
      const draw = () => (
        <Exportable view={view} title={title} model={shown!}>
          <drawn.draw model={shown as never} context={looking} />
        </Exportable>
      );
      return shown ? { view, name, title, draw } : [];
    });
    const { run } = model;
    return (
      <div class="wb-part">
        <Head
          title={run.name}
          facts={[
            momentText(run.written),
            secondsText(run.duration_seconds),
            counted(run.replicas, "replica"),
            counted(run.records, "record"),
            run.alerts > 0 && `▲ ${counted(run.alerts, "alert")}`,
          ]}
          status="replay"
        />
        <Steps key={`${model.shown_from} ${model.shown_to}`} model={model} ask={context.ask} />
        {model.notes.map((note) => (
          <Note key={note}>{note}</Note>
        ))}
        <Tabs label="What was recorded" pages={pages} />
      </div>
    );
  },
};

type Part = keyof typeof PAGES;

function Steps({ model, ask }: { model: Replay; ask: Context["ask"] }) {
  const { first_step, last_step, shown_from, shown_to } = model;
  const [first, setFirst] = useState(shown_from);
  const [last, setLast] = useState(shown_to);
  if (last_step < 0) return null;
  const whole = shown_from <= first_step && shown_to >= last_step;
  if (!ask || first_step === last_step) {
    return (
      <Note>
        steps {count(shown_from)} to {count(shown_to)}
        {whole ? "" : ` of ${count(first_step)} to ${count(last_step)}`}
      </Note>
    );
  }
  const show = (from: number, to: number) => ask({ kind: "show_steps", first: from, last: to });
  const number = (label: string, value: number, set: (value: number) => void) => (
    <label>
      {label}{" "}
      <input
        type="number"
        min={first_step}
        max={last_step}
        required
        value={value}
        onInput={(event) => set(event.currentTarget.valueAsNumber)}
      />
    </label>
  );
  return (
    <form
      class="wb-form"
      onSubmit={(event) => {
        event.preventDefault();
        show(Math.min(first, last), Math.max(first, last));
      }}
    >
      {number("steps from", first, setFirst)}
      {number("to", last, setLast)}
      <button type="submit">Show</button>
      {!whole && <Button onClick={() => show(first_step, last_step)}>All steps</Button>}
      <Quiet>
        of {count(first_step)} to {count(last_step)}; views show the newest of what is chosen
      </Quiet>
    </form>
  );
}
