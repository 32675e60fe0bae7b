// What stopping or shrinking a cluster would end, so that users are asked before they lose something.
import type { TranslationBundle } from "@jupyterlab/translation";
import type { ClusterInfo } from "../server/messages";

/** One sentence for each thing that ends; none if nobody has run a step on the cluster, or it has ended already. */
export function endsWith(
  cluster: ClusterInfo,
  clusters: readonly ClusterInfo[],
  trans: TranslationBundle,
): string[] {
  if (cluster.summary.status === "stopped") return [];
  const trained = cluster.summary.strategies.filter((one) => one.step >= 0 && one.status !== "stopped");
  const strategies = trained.map(({ label, step }) =>
    trans.__("%1 is at step %2: the values of its variables are lost.", label, step),
  );
  const users = usersOf(cluster, clusters);
  return [...strategies, ...users.map(({ name }) => trans.__("%1 uses these workers: it loses them.", name))];
}

/** One sentence for each notebook that loses replicas and their values if only this many workers are left. */
export function losesBy(
  left: number,
  cluster: ClusterInfo,
  clusters: readonly ClusterInfo[],
  trans: TranslationBundle,
): string[] {
  const users = usersOf(cluster, clusters);
  // The workers may not have told yet how many there are; a notebook that uses them has counted them, too.
  const gone = Math.max(...[cluster, ...users].map(({ summary }) => summary.replicas_live)) - left;
  if (gone <= 0) return [];
  return users.map(({ name }) =>
    trans._n(
      "%2 uses these workers: %1 of its replicas loses its values, and its steps fail until there are as many again, unless it was connected with minimum_replicas.",
      "%2 uses these workers: %1 of its replicas lose their values, and its steps fail until there are as many again, unless it was connected with minimum_replicas.",
      gone,
      name,
    ),
  );
}

function usersOf(cluster: ClusterInfo, clusters: readonly ClusterInfo[]): ClusterInfo[] {
  return clusters.filter(
    (one) => one.workers_of === cluster.id && one.id !== cluster.id && one.summary.status !== "stopped",
  );
}
