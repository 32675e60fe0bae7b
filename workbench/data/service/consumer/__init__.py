"""A consumer of a job: its membership with the dispatcher, and how it reads: first come, first served, or in rounds."""
