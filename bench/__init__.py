"""Ratios against what a user would pick instead; one file a comparison, found by its name."""
