"""The parts that all communicators share: calls, plans, positions, failures."""
