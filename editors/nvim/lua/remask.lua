-- Ghost text from Remask in Neovim 0.12 or newer.
local M = {}
local status = {}

--- What the server does: `{ busy, kind, message, reason }`, for a status line; empty before it has said anything.
function M.status()
  return status
end

--- Start the server for the file types it knows, show ghost text while inserting, and map a key that accepts it.
---
---@param options? { cmd?: string[], init_options?: table, accept?: string }
---   `accept` is the key, `<Tab>` by default; it keeps its meaning where there is no ghost text.
function M.setup(options)
  options = options or {}
  if vim.fn.has('nvim-0.12') == 0 then
    vim.notify('Remask needs Neovim 0.12 or newer for its ghost text.', vim.log.levels.WARN)
    return
  end
  local accept = options.accept or '<Tab>'
  vim.lsp.config('remask', {
    cmd = options.cmd,
    init_options = options.init_options,
    handlers = {
      ['remask/didChangeStatus'] = function(_, values)
        status = values
        vim.api.nvim_exec_autocmds('User', { pattern = 'RemaskStatus', modeline = false })
      end,
      ['remask/didWriteDraft'] = function() end,
    },
  })
  vim.api.nvim_create_autocmd('LspAttach', {
    group = vim.api.nvim_create_augroup('remask', {}),
    callback = function(event)
      local client = vim.lsp.get_client_by_id(event.data.client_id)
      if not client or client.name ~= 'remask' then
        return
      end
      vim.lsp.inline_completion.enable(true, { bufnr = event.buf })
      vim.keymap.set('i', accept, function()
        return vim.lsp.inline_completion.get() and '' or accept
      end, { buffer = event.buf, expr = true, desc = 'Accept the ghost text' })
    end,
  })
  vim.lsp.enable('remask')
end

return M
