// The REST interface of our server extension.
import { ServerConnection } from "@jupyterlab/services";
import type { ModuleName } from "../../export/modules";
import type { Replay, Runs } from "../../models";
import type { WorkerOptions } from "../clusters/worker_options";
import type { ClusterInfo } from "./messages";

const ROOT = "workbench/api/";

/** Where the page's WebSocket is opened. */
export function openSocket(settings: ServerConnection.ISettings): WebSocket {
  const token = settings.appendToken && settings.token ? `?token=${encodeURIComponent(settings.token)}` : "";
  return new settings.WebSocket(`${settings.wsUrl}${ROOT}socket${token}`);
}

/** The first page of the guide, which the server builds at the first request. */
export function guideAddress(settings: ServerConnection.ISettings): string {
  return `${settings.baseUrl}${ROOT}guide/`;
}

export class Api {
  constructor(private readonly settings: ServerConnection.ISettings) {}

  start(options: WorkerOptions): Promise<ClusterInfo> {
    return this.#ask("POST", "clusters", options);
  }

  /** Changes the number of workers: up to `maximum` while they are used, if that is not 0. */
  scale(id: string, replicas: number, maximum: number, confirmed: boolean): Promise<ClusterInfo> {
    return this.#ask("PATCH", `clusters/${id}`, { replicas, maximum, confirmed });
  }

  /** Stops a cluster; forgets one that has stopped. */
  stop(id: string): Promise<void> {
    return this.#ask("DELETE", `clusters/${id}`);
  }

  /** Tells the kernels of this machine which layouts are saved here. */
  keepLayoutNames(names: readonly string[]): Promise<void> {
    return this.#ask("PUT", "layouts", { names });
  }

  runs(compare: readonly string[] = []): Promise<Runs> {
    const query = compare.map((path) => `compare=${encodeURIComponent(path)}`).join("&");
    return this.#ask("GET", `runs${query && `?${query}`}`);
  }

  /** A recorded run, or its steps from the first to the last of two. */
  run(path: string, steps: readonly number[] = []): Promise<Replay> {
    const query = steps.map((step) => `step=${step}`).join("&");
    return this.#ask(
      "GET",
      `runs/${path.split("/").map(encodeURIComponent).join("/")}${query && `?${query}`}`,
    );
  }

  /** One of the modules of views, which the extension contains beside its own bundle. */
  async code(name: ModuleName): Promise<string> {
    const address = `${this.settings.baseUrl}lab/extensions/workbench-lab/static/${name}.js`;
    const response = await ServerConnection.makeRequest(address, { method: "GET" }, this.settings);
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    return response.text();
  }

  async #ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await ServerConnection.makeRequest(
      this.settings.baseUrl + ROOT + path,
      init,
      this.settings,
    );
    if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
    const said = (await response.json().catch(() => ({}))) as { message?: string };
    throw new Error(said.message ?? `${response.status} ${response.statusText}`);
  }
}
