// Starts `remask lsp`, lets VS Code's own inline completion show what it answers, and shows the server's status.
const os = require("os");
const path = require("path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const MANIFEST = require("./package.json"); // its languages and settings are the server's, see settings_page.py
const LANGUAGES = MANIFEST.activationEvents.map((event) => event.replace("onLanguage:", ""));
const SCHEMES = ["file", "untitled", "vscode-notebook-cell", "vscode-remote"];
const ICONS = { Normal: "$(sparkle)", Inactive: "$(circle-slash)", Warning: "$(warning)", Error: "$(error)" };

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
    // No `transport`: with one the client would add an argument of its own.
    { command: path.normalize(found), args: ["lsp"] },
    {
      documentSelector: SCHEMES.flatMap((scheme) => LANGUAGES.map((language) => ({ scheme, language }))),
      initializationOptions: options,
    },
  );
}

function showStatus({ busy, kind, message }) {
  statusItem.text = `${busy ? "$(sync~spin)" : ICONS[kind] ?? ICONS.Normal} Remask`;
  statusItem.tooltip = message;
  statusItem.show();
}

async function restart() {
  const old = client;
  client = undefined;
  if (old) {
    // A server that never started cannot be stopped; that is no reason not to start the next one.
    await old.dispose().catch(() => {});
  }
  client = makeClient();
  client.onNotification("remask/didChangeStatus", showStatus);
  client.onNotification("remask/didWriteDraft", () => {});
  await client.start();
}

// Let the user choose among the bodies that were written for the function at the cursor.
async function fillFunction() {
  const editor = vscode.window.activeTextEditor;
  if (!editor || !client) return;
  const place = client.code2ProtocolConverter.asPosition(editor.selection.active);
  const uri = client.code2ProtocolConverter.asUri(editor.document.uri);
  const wish = { uri, position: place, apply: false };
  const answer = await client.sendRequest("workspace/executeCommand", { command: "remask.fill", arguments: [wish] });
  const items = (answer?.candidates ?? []).map(({ text, edit }) => ({ label: text.trim().split("\n")[0], detail: text, edit }));
  const chosen = items.length > 1 ? await vscode.window.showQuickPick(items, { title: "Remask" }) : items[0];
  if (chosen) {
    await vscode.workspace.applyEdit(await client.protocol2CodeConverter.asWorkspaceEdit(chosen.edit));
  }
}

exports.activate = async function activate(context) {
  statusItem = vscode.window.createStatusBarItem("remask", vscode.StatusBarAlignment.Right);
  statusItem.name = "Remask";
  context.subscriptions.push(
    statusItem,
    vscode.commands.registerCommand("remask.restart", restart),
    vscode.commands.registerCommand("remask.fillFunction", fillFunction),
    // All other settings are the server's, and it asks for them when they change.
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("remask.command") && restart()),
  );
  await restart();
};

exports.deactivate = function deactivate() {
  return client?.dispose();
};
