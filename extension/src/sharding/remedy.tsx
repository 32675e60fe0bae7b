// What helps replicas without data, as code for the notebook; where nothing puts it there, it is shown.
import type { DatasetSharding } from "../models";
import { Insert } from "../parts/small";

/** By its name in the model. The code is here, not there: a saved notebook of a stranger has a model, too. */
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
