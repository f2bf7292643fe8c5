// Starts `remask lsp`, lets VS Code's own inline completion show what it answers, and shows the server's status.
const os = require("os");
const path = require("path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const MANIFEST = require("./package.json"); // its languages and settings are the server's, see settings_page.py
const LANGUAGES = MANIFEST.activationEvents.map((event) => event.replace("onLanguage:", ""));
const SCHEMES = ["file", "untitled", "vscode-notebook-cell", "vscode-remote"];
const ICONS = { Normal: "$(sparkle)", Inactive: "$(circle-slash)", Warning: "$(warning)", Error: "$(error)" };

const DRAFT_SHOWN = 400; // characters

const drafts = new Map(); // windows with drafts, by number
let client;
let statusItem;

function settings() {
  const configuration = vscode.workspace.getConfiguration("remask");
  const names = Object.keys(MANIFEST.contributes.configuration.properties);
  return Object.fromEntries(
    names.map((name) => name.replace("remask.", "")).map((name) => [name, configuration.get(name)]),
  );
}

function makeClient() {
  const { command, ...options } = settings();
  const found = command.replace(/^~(?=$|[\\/])/, () => os.homedir());
  return new LanguageClient(
    "remask",
    "Remask",
    // No `transport`: with one the client would add an argument of its own. It would start the server in the folder that
    // is open, which holds anybody's code.
    { command: path.normalize(found), args: ["lsp"], options: { cwd: os.homedir() } },
    {
      documentSelector: SCHEMES.flatMap((scheme) => LANGUAGES.map((language) => ({ scheme, language }))),
      initializationOptions: options,
    },
  );
}

// What became of an item, in the words of docs/protocol.md. VS Code tells it only to extensions that may use the proposed
// API `inlineCompletionsAdditions`; to others it never calls these functions.
function itemEvents(owner) {
  const tell = (method, item, more) => {
    const { command, insertText } = item;
    if (command?.command !== "remask.accepted" || typeof insertText !== "string") return;
    const { title, command: name, arguments: args } = command;
    const told = { insertText, command: { title, command: name, arguments: args } };
    owner.sendNotification(method, { item: told, ...more }).catch(() => {});
  };
  return {
    handleDidShowCompletionItem: (item) => tell("textDocument/didShowCompletion", item),
    handleDidPartiallyAcceptCompletionItem: (item, info) => {
      const acceptedLength = typeof info === "number" ? info : info?.acceptedLength;
      if (Number.isInteger(acceptedLength)) {
        tell("textDocument/didPartiallyAcceptCompletion", item, { acceptedLength });
      }
    },
  };
}

// The client's own provider of ghost text, with these functions on it.
function addItemEvents(owner) {
  const feature = owner.getFeature("textDocument/inlineCompletion");
  const request = require("vscode-languageclient/node").InlineCompletionRequest?.type;
  if (typeof feature?.registerLanguageProvider !== "function" || !request) return;
  feature.registerLanguageProvider = ({ documentSelector }) => {
    const provider = {
      ...itemEvents(owner),
      provideInlineCompletionItems: async (document, position, context, token) => {
        const params = owner.code2ProtocolConverter.asInlineCompletionParams(document, position, context);
        try {
          const answer = await owner.sendRequest(request, params, token);
          return token.isCancellationRequested ? null : owner.protocol2CodeConverter.asInlineCompletionResult(answer, token);
        } catch (error) {
          return owner.handleFailedRequest(request, token, error, null);
        }
      },
    };
    const selector = owner.protocol2CodeConverter.asDocumentSelector(documentSelector);
    return [vscode.languages.registerInlineCompletionItemProvider(selector, provider), provider];
  };
}

// A window with the body that is being written for a function, as long as that goes on.
function showDraft({ number, text, token, done }) {
  let shown = drafts.get(number);
  if (done) {
    shown?.end();
    drafts.delete(number);
    return;
  }
  if (!shown) {
    shown = { report: () => {}, end: () => {} };
    drafts.set(number, shown);
    const where = { location: vscode.ProgressLocation.Notification, title: "Remask", cancellable: token !== undefined };
    vscode.window.withProgress(where, (progress, cancellation) => {
      cancellation.onCancellationRequested(() => client?.sendNotification("window/workDoneProgress/cancel", { token }));
      shown.report = (message) => progress.report({ message });
      shown.report("is reading the file …");
      return new Promise((resolve) => (shown.end = resolve));
    });
  }
  if (text.trim()) shown.report(text.slice(-DRAFT_SHOWN));
}

function showStatus({ busy, kind, message }) {
  statusItem.text = `${busy ? "$(sync~spin)" : ICONS[kind] ?? ICONS.Normal} Remask`;
  statusItem.tooltip = message;
  statusItem.show();
}

async function restart() {
  const old = client;
  const next = makeClient();
  client = next;
  if (old) {
    // A server that never started cannot be stopped; that is no reason not to start the next one.
    await old.dispose().catch(() => {});
    if (client !== next) return; // a later restart has its own
  }
  drafts.forEach((shown) => shown.end());
  drafts.clear();
  addItemEvents(next);
  next.onNotification("remask/didChangeStatus", showStatus);
  next.onNotification("remask/didWriteDraft", showDraft);
  await next.start();
}

// Let the user choose among the bodies that were written for the function at the cursor.
async function fillFunction() {
  const editor = vscode.window.activeTextEditor;
  if (!editor || !client) return;
  const place = client.code2ProtocolConverter.asPosition(editor.selection.active);
  const uri = client.code2ProtocolConverter.asUri(editor.document.uri);
  const wish = { uri, position: place, apply: false };
  const answer = await client.sendRequest("workspace/executeCommand", { command: "remask.fill", arguments: [wish] });
  const items = (answer?.candidates ?? []).map(({ text, edit }) => {
    const lines = text.trim().split("\n"); // a detail is shown on one line
    return { label: lines[0], description: `${lines.length} lines`, detail: lines.map((line) => line.trim()).join(" ⏎ "), edit };
  });
  const chosen = items.length > 1 ? await vscode.window.showQuickPick(items, { title: "Remask" }) : items[0];
  if (chosen) {
    await vscode.workspace.applyEdit(await client.protocol2CodeConverter.asWorkspaceEdit(chosen.edit));
  }
}

// Ghost text while typing, or only when it is asked for.
function toggleAutomatic() {
  const configuration = vscode.workspace.getConfiguration("remask");
  const automatic = !configuration.get("automatic");
  vscode.window.setStatusBarMessage(`Remask: ghost text ${automatic ? "while typing" : "only when asked for"}`, 3000);
  return configuration.update("automatic", automatic, vscode.ConfigurationTarget.Global);
}

exports.activate = async function activate(context) {
  statusItem = vscode.window.createStatusBarItem("remask", vscode.StatusBarAlignment.Right);
  statusItem.name = "Remask";
  statusItem.command = "remask.showLog";
  context.subscriptions.push(
    statusItem,
    vscode.commands.registerCommand("remask.restart", restart),
    vscode.commands.registerCommand("remask.fillFunction", fillFunction),
    vscode.commands.registerCommand("remask.showLog", () => client?.outputChannel.show(true)),
    vscode.commands.registerCommand("remask.toggleAutomatic", toggleAutomatic),
    // All other settings are the server's, and it asks for them when they change.
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("remask.command") && restart()),
  );
  await restart();
};

exports.deactivate = function deactivate() {
  return client?.dispose();
};
