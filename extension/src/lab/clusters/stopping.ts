// What stopping a cluster would end, so that a person is asked first where something is lost.
import type { TranslationBundle } from "@jupyterlab/translation";
import type { ClusterInfo } from "../server/messages";

/** One sentence for each thing that ends; none where nobody has made a step on the cluster, or it has ended already. */
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
  const users = clusters.filter(
    (one) => one.workers_of === cluster.id && one.id !== cluster.id && one.summary.status !== "stopped",
  );
  return [...strategies, ...users.map(({ name }) => trans.__("%1 uses these workers: it loses them.", name))];
}
