"""What people see: texts and script-free HTML of values, timings and failures, and the notebook's hooks."""
