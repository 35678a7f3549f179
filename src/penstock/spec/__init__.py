"""What a pipeline file says: models, loading with file:line errors, references, JSON Schema."""
