"""Variables: an array per replica that persists between steps."""
