"""One TOML file a language, and what a parse can say about a text. Knows no model and no editor.

Importing this package is cheap: grammars are read and tree-sitter is imported when first needed.
"""

from remask.grammars.language import (
    Grammar,
    GrammarError,
    grammar_for_language,
    grammar_for_path,
    grammars,
    language_of,
    load_grammar,
)

__all__ = [
    "Grammar",
    "GrammarError",
    "grammar_for_language",
    "grammar_for_path",
    "grammars",
    "language_of",
    "load_grammar",
]
