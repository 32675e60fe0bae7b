"""What passes over datasets cost: numbers by stage, which stage is busiest, distributions for aggregators."""
