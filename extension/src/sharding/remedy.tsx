// Code for the notebook that helps replicas without data; shown as text where nothing inserts it.
import type { DatasetSharding } from "../models";
import { Insert } from "../parts/small";

/**
 * Code by its name in the model. Kept here rather than in the model, because a stranger's saved notebook has a model,
 * too.
 */
const REMEDIES: Record<string, { label: string; code: string }> = {
  data_policy: {
    label: "Use policy DATA",
    code: `options = wb.data.Options()
options.experimental_distribute.auto_shard_policy = wb.data.AutoShardPolicy.DATA
dataset = dataset.with_options(options)`,
  },
};

export function Remedy({ model: { remedy = "" } }: { model: DatasetSharding }) {
  if (!Object.hasOwn(REMEDIES, remedy)) return null;
  const { label, code } = REMEDIES[remedy]!;
  return (
    <Insert
      class="wb-link"
      label={`${label} →`}
      code={code}
      otherwise={<code class="wb-code">{code}</code>}
    />
  );
}
