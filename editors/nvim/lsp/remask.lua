-- The server for `vim.lsp.enable('remask')`. Options go to `init_options`: model, device, dtype, maxTokens, deadlineMs.
return {
  cmd = { 'remask', 'lsp' },
  filetypes = { 'python' },
  root_markers = { 'pyproject.toml', '.git' },
}
