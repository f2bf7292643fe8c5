-- The server for `vim.lsp.enable('remask')`. Options go to `init_options`; docs/settings.md lists them.
return {
  cmd = { 'remask', 'lsp' },
  filetypes = {
    'python',
    'javascript',
    'javascriptreact',
    'typescript',
    'typescriptreact',
    'go',
    'rust',
    'java',
    'c',
    'cpp',
  },
  root_markers = { 'pyproject.toml', 'package.json', 'go.mod', 'Cargo.toml', 'pom.xml', '.git' },
}
