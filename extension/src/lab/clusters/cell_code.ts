// Cells that connect a notebook.
import type { ClusterInfo } from "../server/messages";

/** A whole cell: runs in a fresh kernel, too. */
export function connectCode(cluster: ClusterInfo): string {
  return `import workbench as wb\n\n${cluster.connect_code}`;
}

const ALONE = "import workbench as wb\n\ncluster = wb.connect()";

/** The cell for a notebook: it uses workers that wait for one, otherwise its own cluster. */
export function codeFor({ clusters }: { clusters: readonly ClusterInfo[] }): string {
  const taken = new Set(
    clusters.filter((one) => one.summary.status !== "stopped").map((one) => one.workers_of),
  );
  const free = clusters.find(
    (one) => one.kind === "workers" && one.summary.status === "live" && !taken.has(one.id),
  );
  return free ? connectCode(free) : ALONE;
}
