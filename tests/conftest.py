"""Settings for every test."""

from __future__ import annotations

from hypothesis import settings

# A deadline measures the machine, not the law.
settings.register_profile("house", deadline=None, max_examples=60)
settings.load_profile("house")
