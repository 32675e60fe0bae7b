"""Variables: an array per replica that lasts from step to step."""
