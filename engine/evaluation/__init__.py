"""Speed and quality, by command."""
