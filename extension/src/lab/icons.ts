// An icon for each pane, so that tabs can be told apart where there is no room for their titles.
import { LabIcon } from "@jupyterlab/ui-components";
import type { ViewName } from "../views";

/** That of workbench itself. */
export const ICON =
  '<circle cx="8" cy="3" r="2"/><circle cx="3" cy="12" r="2"/><circle cx="13" cy="12" r="2"/>' +
  '<path d="M7.3 4.4 3.9 10.2l.9.5L8.2 4.9zM8.7 4.4l3.4 5.8-.9.5L7.8 4.9zM5 11.5h6v1H5z"/>';

/** What is drawn in 16 × 16, in the colour of JupyterLab's icons. */
const SHAPES: Record<ViewName, string> = {
  overview:
    '<path d="M1 2h14v6H1zm1.300 1.300v3.400h11.400V3.300zM1 9.500h6.200V14H1zm1.300 1.300v1.900h3.600v-1.900zM8.800 9.500H15V14H8.800zm1.300 1.300v1.900h3.600v-1.900z"/>',
  topology:
    '<circle cx="8" cy="3" r="2"/><circle cx="3" cy="13" r="2"/><circle cx="13" cy="13" r="2"/><path d="M7.5 4h1v4h4v4h-1V9h-7v3h-1V8h4z"/>',
  values: '<path d="M2 13h12v1H2zM3 9h2v3H3zm4-5h2v8H7zm4 2h2v6h-2z"/>',
  array_sharding: '<path d="M2 2h5v5H2zm7 0h5v5H9zM2 9h5v5H2zm7 0h5v5H9z"/>',
  dataset_sharding: '<path d="M2 2h4v3H2zm5 0h7v3H7zM2 7h8v3H2zm9 0h3v3h-3zM2 12h5v3H2zm6 0h6v3H8z"/>',
  input: '<path d="M1 3h4v4H1zm10 0h4v4h-4zM5 4.500h2.500V3L10 5 7.500 7V5.500H5zM1 10h14v1H1zm0 3h9v1H1z"/>',
  data_service:
    '<path d="M6 1h4v4H6zM1 11h4v4H1zm5 0h4v4H6zm5 0h4v4h-4zM7.500 5h1v2.500H13v3h-1v-2H4v2H3v-3h4.500z"/>',
  servers:
    '<path d="M2 2h12v4H2zm1.500 1.300v1.400H5V3.300zM2 10h12v4H2zm1.500 1.300v1.400H5v-1.400zM4.500 7h1v2h-1zm6 0h1v2h-1z" fill-rule="evenodd"/>',
  collectives: '<path d="M2 4h8V2l4 3-4 3V6H2zm12 6H6V8l-4 3 4 3v-2h8z"/>',
  collective_table: '<path d="M2 2h12v3H2zm0 4h5v3H2zm6 0h6v3H8zm-6 4h5v4H2zm6 0h6v4H8z"/>',
  lanes: '<path d="M2 3h7v2H2zm3 4h9v2H5zm-2 4h6v2H3z"/>',
  sweep: '<path d="M2 2h1v11h11v1H2zm2 9 4-5 3 2 3-5 .8.6-3.5 6L8.2 7.4 4.8 11.600z"/>',
  heat_map: '<path d="M2 2h3v3H2zm4 4h3v3H6zm4-4h4v3h-4zM2 10h3v4H2zm8 0h4v4h-4z"/>',
  stuck: '<path d="M8 1.5 15 14H1zM7.3 6v4h1.400V6zm0 5v1.500h1.400V11z"/>',
  log: '<path d="M2 3h2v2H2zm4 0h8v2H6zM2 7h2v2H2zm4 0h8v2H6zm-4 4h2v2H2zm4 0h5v2H6z"/>',
  devices:
    '<path d="M4 4h8v8H4zM6 1h1v2H6zm3 0h1v2H9zM6 13h1v2H6zm3 0h1v2H9zM1 6h2v1H1zm0 3h2v1H1zm12-3h2v1h-2zm0 3h2v1h-2z"/>',
  runs: '<path d="M2 2h3v12H2zm4 0h3v12H6zm4.2.6 2.9-.8 3 11.5-2.9.8z"/>',
  replay: '<path d="M3 2l11 6-11 6z"/>',
};

/** An icon of the application for drawings in 16 × 16. */
export function iconOf(name: string, shapes: string): LabIcon {
  const svgstr = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><g class="jp-icon3" fill="#616161">${shapes}</g></svg>`;
  return new LabIcon({ name: `workbench:${name}`, svgstr });
}

/** The icon of each view's pane. */
export function viewIcons(): Record<ViewName, LabIcon> {
  const pairs = Object.entries(SHAPES).map(([view, shapes]) => [view, iconOf(view, shapes)] as const);
  return Object.fromEntries(pairs) as Record<ViewName, LabIcon>;
}
