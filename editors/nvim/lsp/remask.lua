-- The server for `vim.lsp.enable('remask')`. Options go to `init_options`; docs/settings.md lists them.
return {
  cmd = { 'remask', 'lsp' },
  filetypes = {
    'c',
    'cpp',
    'cuda-cpp',
    'go',
    'java',
    'javascript',
    'javascriptreact',
    'python',
    'rust',
    'typescriptreact',
    'tsx',
    'typescript',
  },
  root_markers = { 'pyproject.toml', 'package.json', 'go.mod', 'Cargo.toml', 'pom.xml', '.git' },
}
