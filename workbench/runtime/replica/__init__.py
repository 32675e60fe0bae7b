"""One per device: the thread that runs steps, and what it keeps between them."""
