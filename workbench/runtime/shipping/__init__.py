"""How functions travel: pickled, compared with those sent before, looked up on the workers."""
