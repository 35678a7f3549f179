"""From a pipeline file to a running query: session, jars, supervision, fence, progress events."""
