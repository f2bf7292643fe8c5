"""The decode loop and its parts. Knows models, sessions and judges; never files or editors."""
