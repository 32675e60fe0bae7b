// Everything about collectives in one view: what is stuck on top, then one of the others at a time.
import { Exportable } from "../export/scope";
import { Tabs } from "../parts/tabs";
import type { Collectives, Models } from "../models";
import type { View } from "../view";
import { collectiveTable } from "./collective_table";
import { heatMap } from "./heat_map";
import { lanes } from "./lanes";
import { log } from "./log";
import { Banners } from "./stuck";
import { sweep } from "./sweep";

const PAGES = [
  { name: "Table", key: "collective_table", view: collectiveTable },
  { name: "Lanes", key: "lanes", view: lanes },
  { name: "Lateness", key: "heat_map", view: heatMap },
  { name: "Sweep", key: "sweep", view: sweep },
  { name: "Log", key: "log", view: log },
] as const satisfies { name: string; key: keyof Models; view: View<Collectives> }[];

export const collectives: View<Collectives> = {
  title: "Collectives",
  draw({ model, context }) {
    const alerts = model.snapshot.events.filter((event) => event.kind === "alert").length;
    const pages = PAGES.map(({ name, key, view }) => ({
      name,
      title: view.title,
      mark: name === "Log" && alerts > 0 ? `▲ ${alerts}` : "",
      draw: () => (
        <Exportable view={key} title={view.title} model={model}>
          <view.draw model={model} context={context} />
        </Exportable>
      ),
    }));
    return (
      <>
        <Banners snapshot={model.snapshot} />
        <Tabs label="Collectives" pages={pages} />
      </>
    );
  },
};
