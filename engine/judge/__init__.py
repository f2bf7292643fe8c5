"""What a draft is judged by: text and grammars, and the corrector head, a function of the model's states."""
