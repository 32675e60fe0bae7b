"""Places in user code: lines of scripts, cells of notebooks."""
