"""The replica on each device: the thread that runs steps, and its state between them."""
