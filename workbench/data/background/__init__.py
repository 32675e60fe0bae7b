"""Threads and processes that work for a pipeline besides its reader: they read ahead or call functions."""
