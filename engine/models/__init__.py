"""What a checkpoint is and how it runs: spec, transformer, KV cache, loading. Knows nothing of prompts or decoding."""
