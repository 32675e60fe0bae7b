"""A consumer of a job: its registration, and how it reads: first come, first served, or in rounds."""
