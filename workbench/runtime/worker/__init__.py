"""One per worker process: links to the driver, the side thread, telemetry on its way out."""
