"""The default model's files."""
