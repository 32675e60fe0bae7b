// Use and memory of every worker and GPU.
import { WARNING } from "../colours";
import { Head } from "../parts/head";
import { QUIET, StatusWord } from "../parts/status";
import { Courses, MOST_ROWS } from "../parts/courses";
import { Crowd } from "../parts/crowd";
import { Bar } from "../parts/marks";
import { Brushed, stepsOf } from "../parts/steps";
import { named, numeric, Table, type Column } from "../parts/table";
import { wording } from "../parts/terms";
import { counted, memoryText, percent, sumOf } from "../format";
import type { Devices, DeviceUse } from "../models";
import type { View } from "../view";

export const devices: View<Devices> = {
  title: "Devices",
  draw({ model, context }) {
    const axis = stepsOf(model.sampled, context);
    const memory = sumOf(model.devices, (device) => device.memory_bytes ?? 0);
    return (
      <div class="wb-part">
        <Head
          title="Devices"
          facts={[
            counted(model.devices.length, "device"),
            model.status !== "stopped" && `${memoryText(memory)} in use`,
            wording("", `run ${model.run}`),
          ]}
          status={model.status}
        >
          <Brushed steps={axis} />
        </Head>
        <Crowd
          noun="device"
          all={model.devices}
          most={MOST_ROWS}
          measures={[
            ["use %", (one) => one.use_percent],
            ["memory %", (one) => shareOf(one, 100)],
          ]}
          nameOf={(one) => one.name}
          isOdd={(one) => !QUIET.has(one.status)}
        >
          {(lines) => (
            <Courses
              title="Use over the newest steps"
              label="Use of devices"
              courses={lines.map(({ name, recent_percent }) => ({ name, values: recent_percent }))}
              sampled={model.sampled}
              context={context}
            />
          )}
        </Crowd>
        <Table
          label="Use of devices"
          empty="no devices"
          columns={COLUMNS}
          rows={model.devices}
          keyOf={(device) => device.key}
        />
      </div>
    );
  },
};

const COLUMNS: Column<DeviceUse>[] = [
  named("host", (device) => device.host, { rank: 2, least: 60 }),
  named("device", (device) => device.name, { least: 80 }),
  named("kind", (device) => device.kind, { rank: 5, help: "such as CPU" }),
  named("status", (device) => device.status, {
    rank: 1,
    show: (device) => <StatusWord word={device.status} />,
  }),
  numeric("use", (device) => device.use_percent, percent, {
    help: "for a CPU worker, of one core: 200\u202f% are two cores",
    show: (device) => (
      <>
        {device.use_percent !== null && <Bar share={device.use_percent / 100} />}
        {percent(device.use_percent).padStart(5)}
      </>
    ),
  }),
  numeric("memory", (device) => device.memory_bytes, memoryText, {
    show: (device) => <Memory device={device} />,
  }),
  numeric("limit", (device) => device.memory_limit_bytes, memoryText, {
    help: "how much memory there is",
    rank: 4,
  }),
];

/** How much of its memory is in use, of `all`; null: not known. */
function shareOf({ memory_bytes, memory_limit_bytes }: DeviceUse, all: number): number | null {
  return memory_bytes !== null && memory_limit_bytes ? (all * memory_bytes) / memory_limit_bytes : null;
}

function Memory({ device }: { device: DeviceUse }) {
  const share = shareOf(device, 1);
  const full = share !== null && share > 0.8;
  return (
    <>
      {share !== null && <Bar share={share} {...(full ? { colour: WARNING } : {})} />}
      {full ? "▲ " : ""}
      {memoryText(device.memory_bytes)}
    </>
  );
}
