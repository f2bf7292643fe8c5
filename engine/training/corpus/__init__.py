"""From pinned packages or a repository to packed token files."""
