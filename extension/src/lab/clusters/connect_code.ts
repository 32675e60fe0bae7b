// The line that connects a notebook to a cluster: inserted below the active cell, or dragged into place.
import { MimeData } from "@lumino/coreutils";
import { Drag } from "@lumino/dragdrop";
import { NotebookActions, type NotebookPanel } from "@jupyterlab/notebook";
import type { ClusterInfo } from "../server/messages";
import { connectCode } from "./cell_code";

const CELLS = "application/vnd.jupyter.cells";
const MOVED_PIXELS = 5;

/** Inserts the code as a new cell below the active one, without running it. */
export function insertCode(panel: NotebookPanel, code: string): void {
  NotebookActions.insertBelow(panel.content);
  panel.content.activeCell?.model.sharedModel.setSource(code);
}

/** Makes an element draggable into a notebook, where it becomes a cell. */
export function dragConnectCode(event: PointerEvent, element: HTMLElement, cluster: ClusterInfo): void {
  if (event.button !== 0 || (event.target as HTMLElement).closest("button, input")) return;
  const { clientX, clientY } = event;
  const stop = new AbortController();
  const onMove = (moved: PointerEvent) => {
    if (Math.hypot(moved.clientX - clientX, moved.clientY - clientY) < MOVED_PIXELS) return;
    stop.abort();
    const code = connectCode(cluster);
    const mimeData = new MimeData();
    mimeData.setData(CELLS, [
      { cell_type: "code", source: code, metadata: {}, outputs: [], execution_count: null },
    ]);
    mimeData.setData("text/plain", code);
    const dragImage = document.createElement("div");
    dragImage.className = "wb-lab-drag";
    dragImage.textContent = cluster.connect_code;
    const drag = new Drag({
      mimeData,
      dragImage,
      proposedAction: "copy",
      supportedActions: "copy",
      source: element,
    });
    void drag.start(moved.clientX, moved.clientY).then(() => drag.dispose());
  };
  document.addEventListener("pointermove", onMove, { signal: stop.signal });
  document.addEventListener("pointerup", () => stop.abort(), { signal: stop.signal });
}
