"""What all communicators share: the call, its plan, its place in time, its failure."""
