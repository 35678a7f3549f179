"""What Spark wrote into a checkpoint, as values parsed from bytes. Imports no Spark."""
