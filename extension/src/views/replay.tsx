// A recorded run: everything that was recorded, a page for each view, and which of its steps are shown.
import { useState } from "preact/hooks";
import { Exportable } from "../export/scope";
import { Head } from "../parts/head";
import { Tabs } from "../parts/tabs";
import { count, counted, timeText } from "../format";
import type { Models, Replay } from "../models";
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

export const replay: View<Replay> = {
  title: "Recorded run",
  draw({ model, context }) {
    const pages = [
      page("overview", "Overview", overview, model.collectives, context),
      page("collectives", "Collectives", collectives, model.collectives, context),
      page("topology", "Topology", topology, model.topology, context),
      page("devices", "Devices", devices, model.devices, context),
      page("values", "Values", values, model.values, context),
      page("array_sharding", "Array", arraySharding, model.array_sharding, context),
      page("dataset_sharding", "Dataset", datasetSharding, model.dataset_sharding, context),
      page("input", "Input", input, model.input, context),
      page("data_service", "Data service", dataService, model.data_service, context),
      page("servers", "Servers", servers, model.servers, context),
    ].filter((one) => one !== null);
    const { run } = model;
    return (
      <div class="wb-part">
        <Head
          title={run.name}
          facts={[
            run.written && run.written.replace("T", " ").slice(0, 19),
            timeText(run.duration_seconds * 1e6),
            counted(run.replicas, "replica"),
            counted(run.records, "record"),
            run.alerts > 0 && `▲ ${counted(run.alerts, "alert")}`,
          ]}
          status="replay"
        />
        <Steps key={`${model.shown_from} ${model.shown_to}`} model={model} ask={context.ask} />
        {model.notes.map((note) => (
          <p key={note} class="wb-quiet">
            {note}
          </p>
        ))}
        <Tabs label="What was recorded" pages={pages} />
      </div>
    );
  },
};

type Part = Exclude<keyof Models, "replay">;

function page<K extends Part>(
  key: K,
  name: string,
  view: View<Models[K]>,
  model: Models[K] | null,
  context: Context,
) {
  // Nobody can be asked for more than was recorded.
  const looking = { ...context, ask: undefined };
  return (
    model && {
      name,
      title: view.title,
      draw: () => (
        <Exportable view={key} title={view.title} model={model}>
          <view.draw model={model} context={looking} />
        </Exportable>
      ),
    }
  );
}

function Steps({ model, ask }: { model: Replay; ask: Context["ask"] }) {
  const { first_step, last_step, shown_from, shown_to } = model;
  const [first, setFirst] = useState(shown_from);
  const [last, setLast] = useState(shown_to);
  if (last_step < 0) return null;
  const whole = shown_from <= first_step && shown_to >= last_step;
  if (!ask || first_step === last_step) {
    return (
      <p class="wb-quiet">
        steps {count(shown_from)} to {count(shown_to)}
        {whole ? "" : ` of ${count(first_step)} to ${count(last_step)}`}
      </p>
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
      {!whole && (
        <button type="button" onClick={() => show(first_step, last_step)}>
          All steps
        </button>
      )}
      <span class="wb-quiet">
        of {count(first_step)} to {count(last_step)}; views show the newest of what is chosen
      </span>
    </form>
  );
}
