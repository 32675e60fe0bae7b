"""Values, pipelines and programs of the vectors in terms of the public API, and what they run on."""
