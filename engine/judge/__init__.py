"""What a draft is judged by. Knows text and grammars, never the model."""
