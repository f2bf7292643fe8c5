"""From an autoregressive code model to one that denoises blocks: corpus, objective, trainer, heads."""
