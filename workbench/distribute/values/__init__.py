"""Distributed values: one component per replica, kept where the replicas are."""
