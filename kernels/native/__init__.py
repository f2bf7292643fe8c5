"""The whole CPU pass in C: compiled here at its first use, checked, and left alone where it cannot be had."""
