-- `:checkhealth remask`: whether ghost text can come, and why it does not.
local M = {}

function M.check()
  local health = vim.health
  health.start('remask')
  if vim.fn.has('nvim-0.12') == 0 then
    health.error('Neovim is too old for ghost text from a language server.', 'Use Neovim 0.12 or newer.')
    return
  end
  health.ok('Neovim shows ghost text from language servers.')
  local config = vim.lsp.config.remask
  local command = config and config.cmd and config.cmd[1] or 'remask'
  if vim.fn.executable(command) == 0 then
    health.error(
      ('The command %s cannot be run.'):format(command),
      "Name it in require('remask').setup({ cmd = { '/path/to/remask', 'lsp' } })."
    )
    return
  end
  health.ok(('The command is %s.'):format(vim.fn.exepath(command)))
  if not vim.lsp.is_enabled('remask') then
    health.warn('The server is not enabled.', "Call require('remask').setup().")
  elseif #vim.lsp.get_clients({ name = 'remask' }) == 0 then
    health.warn('No server runs.', 'Open a file of a language in its list; `remask doctor` looks for other causes.')
  else
    local status = require('remask').status()
    local say = (status.kind == 'Error' and health.error) or (status.kind == 'Warning' and health.warn) or health.ok
    say(status.message or 'The server runs and has said nothing yet.')
  end
end

return M
