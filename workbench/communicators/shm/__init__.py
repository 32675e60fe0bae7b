"""Processes of one host, through shared memory."""
