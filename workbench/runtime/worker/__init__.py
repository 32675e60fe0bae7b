"""The worker process: links to the driver, the side thread, outgoing telemetry."""
