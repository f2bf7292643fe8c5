// Drives a VS Code in the browser for test_vscode.py: node vscode_drive.mjs PLAYWRIGHT URL FILE STUB, answers on stdout as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [playwright, url, file, stub] = process.argv.slice(2);
const require = createRequire(pathToFileURL(playwright + "/"));
const { chromium } = require("playwright-core");

const browser = await chromium.launch({ executablePath: process.env.REMASK_TEST_CHROMIUM, args: ["--no-sandbox"] });
const page = await browser.newPage();
const facts = {};
try {
  await page.goto(url);
  await page.locator(".monaco-workbench").waitFor();
  await page.getByRole("treeitem", { name: file }).dblclick({ force: true });
  const editor = page.locator(".editor-instance .view-lines").first();
  await editor.waitFor();
  await editor.click();
  facts.status = await page.locator('[id="remask.remask.remask"], [id*="remask"]').first().textContent({ timeout: 60_000 });
  await page.keyboard.press("Control+End");
  await page.keyboard.type("x = ", { delay: 60 });
  const ghost = page.locator(".ghost-text-decoration, .ghost-text, .ghost-text-decoration-preview").first();
  await ghost.waitFor({ timeout: 60_000 });
  facts.ghost = (await ghost.textContent()).replaceAll("\u00a0", " ");
  await page.keyboard.type("f", { delay: 60 });
  await page.waitForFunction(
    () => [...document.querySelectorAll(".ghost-text-decoration, .ghost-text")].some((e) => e.textContent.startsWith("irst")),
  );
  await page.keyboard.press("Control+ArrowRight");
  await page.waitForFunction(
    () => [...document.querySelectorAll(".ghost-text-decoration, .ghost-text")].some((e) => e.textContent.trim().startsWith("+")),
  );
  await page.keyboard.press("Tab");
  await page.waitForFunction(() => !document.querySelector(".ghost-text-decoration, .ghost-text"));
  await page.keyboard.press("Control+s");
  await page.waitForFunction(() => !document.querySelector(".tab.dirty"));
  await page.getByRole("treeitem", { name: stub }).dblclick({ force: true });
  await page.locator(".tab.active", { hasText: stub }).waitFor();
  await page.locator(".editor-instance .view-lines").first().click();
  await page.keyboard.press("Control+End");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("F1");
  await page.keyboard.type("Remask: Fill the function");
  await page.keyboard.press("Enter");
  const window = page.locator(".notification-toast", { hasText: "first" }).first();
  await window.waitFor({ timeout: 60_000 });
  facts.draft = await window.textContent();
  await window.getByRole("button", { name: "Cancel" }).click();
  await window.waitFor({ state: "detached" });
} catch (error) {
  facts.error = String(error);
  await page.screenshot({ path: process.env.REMASK_TEST_SCREENSHOT ?? "/dev/null" }).catch(() => {});
}
console.log(JSON.stringify(facts));
await browser.close();
