"""What users see: text and script-free HTML of values, timings and failures, and the notebook's hooks."""
