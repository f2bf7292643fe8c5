-- Ghost text from Remask in Neovim 0.12 or newer.
local M = {}
local status = {}
local drafts = vim.api.nvim_create_namespace('remask.draft')
local writing = {} -- what is being filled, by the number of the draft: its client and the token of its progress

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

-- Neovim's own state of the ghost text in a buffer; nil where it has been moved.
local function completor(buffer)
  local found, capability = pcall(require, 'vim.lsp._capability')
  local kind = found and (capability.all or {}).inline_completion
  return kind and (kind.active or {})[buffer]
end

--- Ask for several texts, or show the next of those that are there. The way to ghost text with `automatic = false`.
function M.suggest()
  local state = completor(vim.api.nvim_get_current_buf())
  if state and state.current and state:count_items() > 1 then
    vim.lsp.inline_completion.select()
  elseif state and state.request then
    state:request(vim.lsp.protocol.InlineCompletionTriggerKind.Invoked)
  end
end

-- Tell the server that a text is on the screen, once it is.
local function shown(event)
  local request = event.data.request
  if request.type ~= 'complete' or request.method ~= 'textDocument/inlineCompletion' then
    return
  end
  vim.schedule(function()
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    local state = completor(event.buf)
    local item = state and state.current
    if client and client.name == 'remask' and item and item.client_id == client.id and item.command then
      client:notify('textDocument/didShowCompletion', {
        item = { insertText = item.insert_text, command = item.command },
      })
    end
  end)
end

-- Draw what is being written for a function below the place where it will stand.
local function draw(_, draft, context)
  local buffer = vim.uri_to_bufnr(draft.textDocument.uri)
  writing[draft.number] = not draft.done and { client = context.client_id, token = draft.token } or nil
  if not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  local mark = { id = draft.number, virt_lines = {} }
  for line in vim.gsplit(draft.text, '\n', { plain = true }) do
    table.insert(mark.virt_lines, { { line, 'ComplHint' } })
  end
  if draft.text == '' then
    mark = { id = draft.number, virt_text = { { ' Remask is reading ...', 'ComplHint' } } }
  end
  if draft.done or draft.position.line >= vim.api.nvim_buf_line_count(buffer) then
    vim.api.nvim_buf_del_extmark(buffer, drafts, draft.number)
  else
    vim.api.nvim_buf_set_extmark(buffer, drafts, draft.position.line, 0, mark)
  end
end

--- Write bodies for the function at the cursor, and put in the one that the user chooses.
function M.fill()
  local client = vim.lsp.get_clients({ bufnr = 0, name = 'remask' })[1]
  if not client then
    return
  end
  local place = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local wish = { uri = place.textDocument.uri, position = place.position, apply = false }
  local params = { command = 'remask.fill', arguments = { wish } }
  client:request('workspace/executeCommand', params, function(failure, answer)
    if failure then
      vim.notify(failure.message, vim.log.levels.WARN)
      return
    end
    local function put(one)
      if one then
        vim.lsp.util.apply_workspace_edit(one.edit, client.offset_encoding)
      end
    end
    local candidates = answer and answer.candidates or {}
    if #candidates < 2 then
      put(candidates[1])
      return
    end
    vim.ui.select(candidates, {
      prompt = 'Remask',
      format_item = function(one)
        return (vim.trim(one.text):gsub('%s*\n%s*', ' ⏎ '))
      end,
    }, put)
  end)
end

--- Stop filling functions.
function M.cancel()
  for _, one in pairs(writing) do
    local client = vim.lsp.get_client_by_id(one.client)
    if client and one.token then
      client:notify('window/workDoneProgress/cancel', { token = one.token })
    end
  end
end

local function map(buffer, key, take, description)
  if key then
    vim.keymap.set('i', key, function()
      return take() == false and key or ''
    end, { buffer = buffer, expr = true, desc = description })
  end
end

--- Start the server for the file types it knows, show ghost text while inserting, and map keys that accept it.
---
---@param options? { cmd?: string[], init_options?: table, accept?: string, accept_word?: string, accept_line?: string, suggest?: string }
---   `accept` is the key, `<Tab>` by default; the others have none. Each but `suggest` keeps its meaning where there is
---   no ghost text.
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
      ['remask/didWriteDraft'] = draw,
    },
  })
  local group = vim.api.nvim_create_augroup('remask', {})
  vim.api.nvim_create_autocmd('LspRequest', { group = group, callback = shown })
  vim.api.nvim_create_autocmd('LspAttach', {
    group = group,
    callback = function(event)
      local client = vim.lsp.get_client_by_id(event.data.client_id)
      if not client or client.name ~= 'remask' then
        return
      end
      vim.lsp.inline_completion.enable(true, { bufnr = event.buf })
      map(event.buf, options.accept or '<Tab>', M.accept, 'Accept the ghost text')
      map(event.buf, options.accept_word, M.accept_word, 'Accept a word of the ghost text')
      map(event.buf, options.accept_line, M.accept_line, 'Accept a line of the ghost text')
      map(event.buf, options.suggest, vim.schedule_wrap(M.suggest), 'Ask for ghost text, or for another')
    end,
  })
  vim.lsp.enable('remask')
end

return M
