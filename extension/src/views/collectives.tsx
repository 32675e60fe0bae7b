// Everything about collectives in one view: a hang on top, then one of the other views at a time.
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
  ["Table", "collective_table", collectiveTable],
  ["Lanes", "lanes", lanes],
  ["Lateness", "heat_map", heatMap],
  ["Sweep", "sweep", sweep],
  ["Log", "log", log],
] as const satisfies [name: string, key: keyof Models, view: View<Collectives>][];

export const collectives: View<Collectives> = {
  title: "Collectives",
  draw(shown) {
    const { model } = shown;
    const alerts = model.snapshot.events.filter((event) => event.kind === "alert").length;
    const pages = PAGES.map(([name, key, view]) => ({
      name,
      title: view.title,
      mark: name === "Log" && alerts > 0 ? `▲ ${alerts}` : "",
      draw: () => (
        <Exportable view={key} title={view.title} model={model}>
          <view.draw {...shown} />
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
