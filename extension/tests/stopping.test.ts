import assert from "node:assert/strict";
import { test } from "node:test";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { ClusterInfo, StrategySummary } from "../src/lab/server/messages";
import { endsWith, losesBy } from "../src/lab/clusters/stopping";

const trans: TranslationBundle = {
  __: (text: string, ...args: unknown[]) =>
    text.replace(/%(\d)/g, (_, place: string) => String(args[Number(place) - 1])),
  _n: (one: string, many: string, count: number, ...args: unknown[]) =>
    trans.__(count === 1 ? one : many, count, ...args),
};

function cluster(
  id: string,
  part: Partial<ClusterInfo> & { status?: string; steps?: number[]; live?: number },
): ClusterInfo {
  const strategies: StrategySummary[] = (part.steps ?? []).map((step) => ({
    ...{ label: "MirroredStrategy", replicas: 2, status: "live", step },
  }));
  const summary = {
    ...{
      status: part.status ?? "live",
      text: "",
      replicas: 2,
      replicas_live: part.live ?? 2,
      hosts: 1,
      busbw: null,
    },
    ...{ alerts: 0, nan: 0, severity: "good", sentence: "", embedded: true, strategies, pool: null },
  };
  const entry = { kind: "driver", name: `${id}.ipynb`, pid: 1, started: 0, kernel: "", workers_of: "" };
  return { ...entry, connect_code: "", ...part, id, summary };
}

test("a cluster on which steps were made is not stopped without a question", () => {
  const trains = cluster("a", { steps: [59, -1] });
  assert.deepEqual(endsWith(trains, [trains], trans), [
    "MirroredStrategy is at step 59: the values of its variables are lost.",
  ]);
});

test("a cluster that nobody has used, and one that has ended, are stopped at once", () => {
  for (const idle of [
    cluster("a", { steps: [-1] }),
    cluster("a", {}),
    cluster("a", { steps: [3], status: "stopped" }),
  ])
    assert.deepEqual(endsWith(idle, [idle], trans), []);
});

test("workers that a notebook uses are not stopped without a question", () => {
  const workers = cluster("w", { kind: "workers" });
  const user = cluster("b", { workers_of: "w", steps: [4] });
  const gone = cluster("c", { workers_of: "w", steps: [4], status: "stopped" });
  assert.deepEqual(endsWith(workers, [workers, user, gone], trans), [
    "b.ipynb uses these workers: it loses them.",
  ]);
});

test("replicas that a notebook uses are not taken away without a question", () => {
  const workers = cluster("w", { kind: "workers" });
  const user = cluster("b", { workers_of: "w", steps: [4] });
  const gone = cluster("c", { workers_of: "w", steps: [4], status: "stopped" });
  const all = [workers, user, gone];
  assert.match(
    losesBy(1, workers, all, trans).join(),
    /^b.ipynb uses these workers: 1 of its replicas loses/,
  );
  assert.deepEqual(losesBy(2, workers, all, trans), []);
  assert.deepEqual(losesBy(8, workers, all, trans), []);
  assert.deepEqual(losesBy(1, workers, [workers, gone], trans), []);
});

test("what a notebook says counts where the workers have not told yet how many there are", () => {
  const workers = cluster("w", { kind: "workers", live: 1 });
  const user = cluster("b", { workers_of: "w", steps: [4] });
  assert.equal(losesBy(1, workers, [workers, user], trans).length, 1);
  assert.deepEqual(losesBy(2, workers, [workers, user], trans), []);
});
