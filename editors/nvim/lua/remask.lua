-- Ghost text from Remask in Neovim 0.12 or newer.
local M = {}
local status = {}

--- What the server does: `{ busy, kind, message, reason }`, for a status line; empty before it has said anything.
function M.status()
  return status
end

-- Neovim accepts at the place of the answer. What was typed since is the beginning of the text: leave it out.
local function since_typed(item)
  local text = item.insert_text
  if type(text) ~= 'string' or not item.range then
    return item
  end
  local row, column = item.range:to_extmark()
  local cursor = vim.api.nvim_win_get_cursor(0)
  if cursor[1] - 1 ~= row or cursor[2] <= column then
    return item
  end
  local typed = vim.api.nvim_buf_get_text(0, row, column, row, cursor[2], {})[1]
  if not vim.startswith(text, typed) then
    return nil
  end
  item.insert_text = text:sub(#typed + 1)
  item.range = nil -- at the cursor
  return item
end

-- What the first of the patterns that fits finds at the start of the text; the server has the rest ready.
local function first(...)
  local patterns = { ... }
  return function(item)
    item = since_typed(item)
    if not item or type(item.insert_text) ~= 'string' then
      return item
    end
    local taken = item.insert_text
    for _, pattern in ipairs(patterns) do
      local found = item.insert_text:match(pattern)
      if found then
        taken = found
        break
      end
    end
    if taken ~= item.insert_text then
      local client = vim.lsp.get_client_by_id(item.client_id)
      if client then
        client:notify('textDocument/didPartiallyAcceptCompletion', {
          item = { insertText = item.insert_text, command = item.command },
          acceptedLength = vim.str_utfindex(taken, 'utf-16'),
        })
      end
      item.insert_text = taken
      item.command = nil
    end
    return item
  end
end

local function accept(on_accept)
  return vim.lsp.inline_completion.get({ on_accept = on_accept })
end

--- Take the ghost text; false where there is none.
function M.accept()
  return accept(since_typed)
end

--- Take its next word.
function M.accept_word()
  return accept(first('^%s*[%w_\128-\255]+', '^%s*[^%w%s]+'))
end

--- Take its next line.
function M.accept_line()
  return accept(first('^\n?[^\n]+'))
end

local function map(buffer, key, take, description)
  if key then
    vim.keymap.set('i', key, function()
      return take() and '' or key
    end, { buffer = buffer, expr = true, desc = description })
  end
end

--- Start the server for the file types it knows, show ghost text while inserting, and map keys that accept it.
---
---@param options? { cmd?: string[], init_options?: table, accept?: string, accept_word?: string, accept_line?: string }
---   `accept` is the key, `<Tab>` by default; the other two have none. Each keeps its meaning where there is no ghost
---   text.
function M.setup(options)
  options = options or {}
  if vim.fn.has('nvim-0.12') == 0 then
    vim.notify('Remask needs Neovim 0.12 or newer for its ghost text.', vim.log.levels.WARN)
    return
  end
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
      map(event.buf, options.accept or '<Tab>', M.accept, 'Accept the ghost text')
      map(event.buf, options.accept_word, M.accept_word, 'Accept a word of the ghost text')
      map(event.buf, options.accept_line, M.accept_line, 'Accept a line of the ghost text')
    end,
  })
  vim.lsp.enable('remask')
end

return M
