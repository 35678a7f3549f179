"""Real services as local processes, for the demo, the tests and the drills."""
