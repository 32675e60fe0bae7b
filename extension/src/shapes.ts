// Generated from workbench/ui/models/messages.py by `python extension/models.py`; do not edit.

export type Shape =
  | "string"
  | "integer"
  | "number"
  | "boolean"
  | "null"
  | { list: Shape }
  | { tuple: Shape[] }
  | { either: Shape[] }
  | { object: string };

export const SHAPES: Record<string, Record<string, Shape>> = {
  ReplicaNode: {"group": "string", "replica": "integer", "busy": "boolean", "doing": "string"},
  DeviceNode: {"name": "string", "kind": "string", "replicas": {"list": {"object": "ReplicaNode"}}},
  WorkerNode: {"name": "string", "pid": "integer", "status": "string", "detail": "string", "memory_bytes": {"either": ["integer", "null"]}, "heartbeat_age_seconds": "number", "devices": {"list": {"object": "DeviceNode"}}},
  HostNode: {"name": "string", "workers": {"list": {"object": "WorkerNode"}}},
  StrategyNode: {"label": "string", "replicas": "integer", "status": "string", "transport": "string", "generation": "integer", "step": "integer"},
  Topology: {"run": "string", "status": "string", "hosts": {"list": {"object": "HostNode"}}, "strategies": {"list": {"object": "StrategyNode"}}},
  Summary: {"shape": {"list": "integer"}, "dtype": "string", "read": "integer", "mean": {"either": ["number", "null"]}, "std": {"either": ["number", "null"]}, "min": {"either": ["number", "null"]}, "max": {"either": ["number", "null"]}, "l2": {"either": ["number", "null"]}, "zeros": "integer", "nan": "integer", "inf": "integer", "first_bad": "integer", "histogram": {"list": "integer"}, "sha256": "string"},
  ReplicaSummary: {"replica": "integer", "host": "string", "device": "string", "summary": {"either": [{"object": "Summary"}, "string"]}, "age_seconds": {"either": ["number", "null"]}, "note": "string", "bad_since": "integer", "step": "integer"},
  Agreement: {"in_sync": "boolean", "sha256": "string", "max_abs_difference": {"either": ["number", "null"]}, "first_replica": "integer", "since": "string"},
  Quantiles: {"figure": "string", "low": "number", "p10": "number", "median": "number", "p90": "number", "high": "number"},
  ReplicaSpread: {"quantiles": {"list": {"object": "Quantiles"}}, "outliers": {"list": "integer"}, "outlying": "integer", "not_finite": "integer"},
  Onset: {"step": "integer", "seq": "integer", "op": "string", "site": "string", "replicas": {"list": "integer"}, "n": "integer", "last_step": "integer", "certain": "boolean"},
  InspectedValue: {"name": "string", "kind": "string", "replicas": {"list": {"object": "ReplicaSummary"}}, "agreement": {"either": [{"object": "Agreement"}, "null"]}, "hints": {"list": "string"}, "spread": {"either": [{"object": "ReplicaSpread"}, "null"]}, "entered": {"either": [{"object": "Onset"}, "null"]}},
  Elements: {"value": "integer", "replica": "integer", "difference": "boolean", "shape": {"list": "integer"}, "axes": {"tuple": ["integer", "integer"]}, "index": {"list": "integer"}, "extent": {"tuple": ["integer", "integer"]}, "steps": {"tuple": ["integer", "integer"]}, "cells": {"list": {"list": {"either": ["number", "string"]}}}},
  FirstBad: {"value": "integer", "replica": "integer", "text": "string"},
  Steps: {"steps": {"list": "integer"}, "shown": "integer"},
  Values: {"values": {"list": {"object": "InspectedValue"}}, "elements": {"either": [{"object": "Elements"}, "null"]}, "looked_at": "number", "first": {"either": [{"object": "FirstBad"}, "null"]}, "steps": {"either": [{"object": "Steps"}, "null"]}},
  ArrayPart: {"replica": "integer", "host": "string", "device": "string", "start": {"list": "integer"}, "stop": {"list": "integer"}, "size_bytes": "integer"},
  ArraySharding: {"name": "string", "kind": "string", "shape": {"list": "integer"}, "dtype": "string", "parts": {"list": {"object": "ArrayPart"}}, "size_bytes": "integer", "imbalance_percent": "number", "sentence": "string"},
  Reading: {"step": "integer", "rows": "integer", "ranges": {"list": {"tuple": ["integer", "integer"]}}, "text": "string"},
  Reader: {"replica": "integer", "host": "integer", "rows": "integer", "empty_steps": "integer", "readings": {"list": {"object": "Reading"}}},
  InputProgress: {"epoch": "integer", "given": "integer", "elapsed_seconds": "number", "steps": {"list": "integer"}, "waited_seconds": {"list": "number"}},
  DatasetSharding: {"summary": "string", "policy": "string", "reason": "string", "algorithm": "string", "hosts": "integer", "replicas_per_host": "integer", "batch_size": "integer", "elements": "integer", "duplicates": "integer", "dropped": {"either": ["integer", "null"]}, "steps": "integer", "remainder": {"list": "integer"}, "readers": {"list": {"object": "Reader"}}, "hidden_readers": "integer", "counts": {"list": "integer"}, "positions": "integer", "marks": {"list": {"tuple": ["integer", "string"]}}, "limit": "string", "progress": {"either": [{"object": "InputProgress"}, "null"]}},
  StageFlow: {"name": "string", "depth": "integer", "is_source": "boolean", "elements": "integer", "failures": "integer", "elements_per_second": "number", "recent_per_second": {"either": ["number", "null"]}, "bytes_per_second": {"either": ["number", "null"]}, "own_seconds": "number", "own_us": {"either": ["number", "null"]}, "busy_share": "number", "waited_seconds": "number", "blocked_seconds": "number", "workers": "integer", "worker_kind": "string", "workers_chosen": "boolean", "queue_fill": {"either": ["number", "null"]}, "queue_capacity": {"either": ["integer", "null"]}, "queue_chosen": "boolean", "held_bytes": "integer", "block_rows": "integer", "note": "string"},
  PipelineFlow: {"host": "integer", "name": "string", "processes": "integer", "elements_per_second": "number", "recent_per_second": {"either": ["number", "null"]}, "stages": {"list": {"object": "StageFlow"}}, "bottleneck": "integer"},
  ReplicaWait: {"replica": "integer", "host": "integer", "waited_seconds": "number", "waited_share": "number", "starving": "boolean"},
  InputFlow: {"status": "string", "sentence": "string", "advice": "string", "elapsed_seconds": "number", "limit": "string", "pipelines": {"list": {"object": "PipelineFlow"}}, "hidden_pipelines": "integer", "replicas": {"list": {"object": "ReplicaWait"}}, "hidden_replicas": "integer"},
  JobStatus: {"name": "string", "iteration": "integer", "processing_mode": "string", "consumers": "integer", "num_consumers": "integer", "missing": {"list": "integer"}, "cached": "boolean", "lanes": "integer", "lanes_complete": "integer", "moves": "integer", "splits_done": "integer", "splits_leased": "integer", "splits_left": "integer", "elements": "integer", "elements_per_second": "number", "complete": "boolean"},
  WorkerStatus: {"address": "string", "lanes": "integer", "elements": "integer", "elements_per_second": "number"},
  ServiceStatus: {"address": "string", "datasets": "integer", "jobs": {"list": {"object": "JobStatus"}}, "workers": {"list": {"object": "WorkerStatus"}}, "status": "string", "sentence": "string", "advice": "string"},
  HeldVariable: {"name": "string", "dtype": "string", "shape": {"list": "integer"}, "size_bytes": "integer", "slot_bytes": "integer", "updates": "integer"},
  ServerStatus: {"name": "string", "host": "string", "address": "string", "state": "string", "detail": "string", "restarts": "integer", "variables": {"list": {"object": "HeldVariable"}}, "hidden_variables": "integer", "size_bytes": "integer", "updates": "integer", "updates_per_second": "number", "repeated": "integer", "left_out": "integer", "newest_staleness": {"either": ["integer", "null"]}, "typical_staleness": {"either": ["integer", "null"]}},
  WorkerFunctions: {"name": "string", "host": "string", "state": "string", "detail": "string", "restarts": "integer", "done": "integer", "functions_per_second": "number", "running": "string", "running_together": "integer", "running_seconds": "number"},
  FunctionQueue: {"waiting": "integer", "blocked": "integer", "running": "integer", "done": "integer", "failed": "integer", "cancelled": "integer", "run_again": "integer", "capacity": "integer", "error": "string"},
  ServersStatus: {"servers": {"list": {"object": "ServerStatus"}}, "workers": {"list": {"object": "WorkerFunctions"}}, "queue": {"either": [{"object": "FunctionQueue"}, "null"]}, "status": "string", "sentence": "string", "advice": "string"},
  Counters: {"records": "integer", "collectives": "integer", "internal": "integer", "failed": "integer", "pending": "integer", "incomplete": "integer", "dropped": "integer", "dropped_events": "integer", "duplicates": "integer"},
  TableRow: {"key": "string", "op": "string", "redop": "string", "dtype": "string", "group": "string", "n": "integer", "count": "integer", "algorithm": "string", "packs": "integer", "transport": "string", "purpose": "string", "size_bytes": "integer", "bucket_bytes": "integer", "samples": "integer", "last_us": "number", "p50_us": "number", "p99_us": "number", "cv_percent": "number", "algbw": {"either": ["number", "null"]}, "busbw": {"either": ["number", "null"]}, "limit_percent": {"either": ["number", "null"]}, "wait_percent": "number", "skew_us": "number", "skew_err_us": "number", "late_replica": {"either": ["integer", "null"]}, "late_host": {"either": ["string", "null"]}, "recent_us": {"list": "number"}, "version": "integer"},
  Lane: {"replica": "integer", "label": "string"},
  LaneItem: {"key": "string", "op": "string", "state": "string", "site": "string", "step": "integer", "seq": "integer", "size_bytes": "integer", "ready_ns": "integer", "err_ns": "integer", "enter_ns": {"list": {"either": ["integer", "null"]}}, "end_ns": {"list": {"either": ["integer", "null"]}}, "version": "integer"},
  Late: {"replica": "integer", "steps": "integer", "of_steps": "integer", "by_us": "number", "share": "number", "compute_us": "number", "others_us": "number"},
  Lateness: {"replicas": {"list": "integer"}, "steps": {"list": "integer"}, "late_us": {"list": {"list": {"either": ["number", "null"]}}}, "stragglers": {"list": "integer"}, "slow_steps": {"list": "integer"}, "text": "string", "late": {"list": {"object": "Late"}}},
  LastSeen: {"replica": "integer", "step": "integer", "seq": "integer", "op": "string", "site": "string", "now": "string"},
  Stuck: {"step": "integer", "seq": "integer", "op": "string", "site": "string", "waiting": {"list": "integer"}, "missing": {"list": "integer"}, "since_ns": "integer", "last": {"list": {"object": "LastSeen"}}, "state": "string", "reached": {"list": "integer"}, "seconds": "integer"},
  Pace: {"steps": "integer", "last_step": "integer", "end_ns": "integer", "step_us": "number", "waited_share": {"either": ["number", "null"]}, "sent_share": {"either": ["number", "null"]}, "compute_share": {"either": ["number", "null"]}, "read_share": "number"},
  Slowdown: {"step": "integer", "before_us": "number", "after_us": "number", "grown": "string", "grown_before_us": "number", "grown_after_us": "number"},
  InputFacts: {"waited_shares": {"list": "number"}, "elements": "integer", "element_us": "number", "rows": {"list": "integer"}, "empty_for": {"list": "integer"}},
  MemoryFacts: {"replica": "integer", "used_bytes": "integer", "limit_bytes": "integer", "grown_bytes": "integer", "steps": "integer"},
  Told: {"cores": "integer", "input": {"either": [{"object": "InputFacts"}, "null"]}, "memory": {"either": [{"object": "MemoryFacts"}, "null"]}},
  GroupView: {"run_id": "string", "group": "string", "generation": "integer", "n": "integer", "lanes": {"list": {"object": "Lane"}}, "hidden_lanes": "integer", "items": {"list": {"object": "LaneItem"}}, "lateness": {"object": "Lateness"}, "stuck": {"either": [{"object": "Stuck"}, "null"]}, "not_finite": {"either": [{"object": "Onset"}, "null"]}, "not_finite_now": {"either": [{"object": "Onset"}, "null"]}, "pace": {"object": "Pace"}, "slowdown": {"either": [{"object": "Slowdown"}, "null"]}, "told": {"object": "Told"}},
  EventItem: {"key": "string", "kind": "string", "name": "string", "message": "string", "t_ns": "integer", "severity": "string", "replica": "integer", "host": "string", "step": "integer", "site": "string", "generation": "integer", "version": "integer"},
  Snapshot: {"version": "integer", "counters": {"object": "Counters"}, "table": {"list": {"object": "TableRow"}}, "internal": {"list": {"object": "TableRow"}}, "groups": {"list": {"object": "GroupView"}}, "events": {"list": {"object": "EventItem"}}},
  SweepPoint: {"size_bytes": "integer", "samples": "integer", "p10_us": "number", "p50_us": "number", "p90_us": "number", "p10_busbw": {"either": ["number", "null"]}, "p50_busbw": {"either": ["number", "null"]}, "p90_busbw": {"either": ["number", "null"]}},
  Baseline: {"name": "string", "n": "integer", "transport": "string", "points": {"list": {"object": "SweepPoint"}}},
  Sweep: {"key": "string", "op": "string", "redop": "string", "dtype": "string", "group": "string", "n": "integer", "transport": "string", "points": {"list": {"object": "SweepPoint"}}, "latency_us": {"either": ["number", "null"]}, "bandwidth": {"either": ["number", "null"]}, "limit": {"either": ["number", "null"]}, "baseline": {"either": [{"object": "Baseline"}, "null"]}},
  Collectives: {"status": "string", "silent": {"list": "string"}, "snapshot": {"object": "Snapshot"}, "sweeps": {"list": {"object": "Sweep"}}},
  DeviceUse: {"key": "string", "host": "string", "name": "string", "kind": "string", "status": "string", "use_percent": {"either": ["number", "null"]}, "memory_bytes": {"either": ["integer", "null"]}, "memory_limit_bytes": {"either": ["integer", "null"]}, "recent_percent": {"list": {"either": ["number", "null"]}}},
  Devices: {"run": "string", "status": "string", "devices": {"list": {"object": "DeviceUse"}}},
  RunEntry: {"path": "string", "name": "string", "written": "string", "size_bytes": "integer", "records": "integer", "duration_seconds": "number", "replicas": "integer", "alerts": "integer", "problem": "string"},
  Spread: {"samples": "integer", "p25_us": "number", "p50_us": "number", "p75_us": "number", "busbw": {"either": ["number", "null"]}},
  ComparedRow: {"key": "string", "op": "string", "redop": "string", "dtype": "string", "n": "integer", "size_bytes": "integer", "first": {"either": [{"object": "Spread"}, "null"]}, "second": {"either": [{"object": "Spread"}, "null"]}, "ratio": {"either": ["number", "null"]}, "difference_seconds": {"either": ["number", "null"]}, "verdict": "string"},
  Runs: {"folder": "string", "runs": {"list": {"object": "RunEntry"}}, "compared": {"list": "string"}, "rows": {"list": {"object": "ComparedRow"}}},
  Replay: {"run": {"object": "RunEntry"}, "first_step": "integer", "last_step": "integer", "shown_from": "integer", "shown_to": "integer", "collectives": {"object": "Collectives"}, "topology": {"either": [{"object": "Topology"}, "null"]}, "devices": {"either": [{"object": "Devices"}, "null"]}, "values": {"either": [{"object": "Values"}, "null"]}, "array_sharding": {"either": [{"object": "ArraySharding"}, "null"]}, "dataset_sharding": {"either": [{"object": "DatasetSharding"}, "null"]}, "input": {"either": [{"object": "InputFlow"}, "null"]}, "data_service": {"either": [{"object": "ServiceStatus"}, "null"]}, "servers": {"either": [{"object": "ServersStatus"}, "null"]}, "notes": {"list": "string"}},
};

/** View -> the class that it draws. */
export const DRAWN = {
  topology: "Topology",
  values: "Values",
  array_sharding: "ArraySharding",
  dataset_sharding: "DatasetSharding",
  input: "InputFlow",
  data_service: "ServiceStatus",
  servers: "ServersStatus",
  collectives: "Collectives",
  collective_table: "Collectives",
  lanes: "Collectives",
  sweep: "Collectives",
  heat_map: "Collectives",
  stuck: "Collectives",
  log: "Collectives",
  devices: "Devices",
  runs: "Runs",
  replay: "Replay",
} as const;
