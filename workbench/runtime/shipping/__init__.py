"""How functions travel: pickled, compared with what was sent before, looked up on the workers."""
