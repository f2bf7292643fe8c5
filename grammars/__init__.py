"""One TOML file a language, and what a parse can say about a text. Knows no model and no editor."""
