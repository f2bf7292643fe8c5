"""What every part of Remask shares: errors, messages and places. No torch, no LSP.

This package knows neither the model nor the editor; everything else may import it.
"""
