"""Links between driver and workers, and their messages."""
