// Starts `remask lsp` and lets VS Code's own inline completion show what it answers.
const os = require("os");
const path = require("path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const LANGUAGES = ["python"];
const SCHEMES = ["file", "untitled", "vscode-notebook-cell", "vscode-remote"];
const OPTIONS = ["model", "device", "dtype", "maxTokens", "deadlineMs"];

let client;

function makeClient() {
  const settings = vscode.workspace.getConfiguration("remask");
  const command = settings.get("command").replace(/^~(?=$|[\\/])/, () => os.homedir());
  return new LanguageClient(
    "remask",
    "Remask",
    // No `transport`: with one the client would add an argument of its own.
    { command: path.normalize(command), args: ["lsp"] },
    {
      documentSelector: SCHEMES.flatMap((scheme) => LANGUAGES.map((language) => ({ scheme, language }))),
      initializationOptions: Object.fromEntries(OPTIONS.map((name) => [name, settings.get(name)])),
    },
  );
}

async function restart() {
  const old = client;
  client = undefined;
  if (old) {
    // A server that never started cannot be stopped; that is no reason not to start the next one.
    await old.dispose().catch(() => {});
  }
  client = makeClient();
  await client.start();
}

exports.activate = async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("remask.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("remask") && restart()),
  );
  await restart();
};

exports.deactivate = function deactivate() {
  return client?.dispose();
};
