"""A tree of texts for one hole: grown by re-noising weak spans, valued, settled and ended. See docs/decoding.md."""
