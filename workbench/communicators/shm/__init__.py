"""Communication between the processes of one host, through shared memory."""
