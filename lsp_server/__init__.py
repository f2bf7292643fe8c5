"""Talks to editors. Imports no torch: the engine is another process."""
