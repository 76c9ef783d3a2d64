// Plugins of an organization: from the catalogue, written here, changed, removed.

import type { Page } from "@playwright/test";
import { alive, apiKey, call, checkPage, expect, save, type Server, test } from "./helpers";

/** The pages of the organization's plugins. */
async function lists(page: Page, server: Server, scripts: boolean): Promise<string> {
  const key = await apiKey(page, server, scripts);
  const { id } = await call(server, key, "GET", "/api/organizations/@current/");
  return `/organizations/${id}/plugins`;
}

test("a destination comes from the catalogue", async ({ page, server, scripts }) => {
  const base = await lists(page, server, scripts);
  await page.goto(`${base}/destinations`);
  await alive(page, scripts);
  await expect(page.getByRole("heading", { name: "No destination yet" })).toBeVisible();
  await page.getByRole("link", { name: "Add destination" }).first().click();
  await alive(page, scripts);
  await page.getByLabel("Name or purpose").fill("hook");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.waitForURL("**search=hook**");
  await alive(page, scripts);
  await expect(page.getByRole("heading", { name: "Slack message" })).toHaveCount(0);
  await checkPage(page, "adding a plugin");
  await page.getByRole("button", { name: "Add Webhook" }).click();
  await expect(page.getByRole("heading", { name: "Webhook", level: 1 })).toBeVisible();
  await expect(page.getByText("Added Webhook.")).toBeVisible();
  await expect(page.getByRole("table", { name: "Settings" })).toContainText("Address");
  await checkPage(page, "a plugin");
  await page.goto(`${base}/destinations`);
  await expect(page.getByRole("link", { name: "Webhook" })).toBeVisible();
  await expect(page.getByText("Unused")).toBeVisible();
  await checkPage(page, "the list of destinations");
});

test("an invalid address is refused at the field", async ({ page, server, scripts }) => {
  const base = await lists(page, server, scripts);
  await page.goto(`${base}/destinations/add`);
  await alive(page, scripts);
  await page.getByLabel("Address").fill("https://example.org/tea");
  await page.getByRole("button", { name: "Add from address" }).click();
  await expect(page.getByLabel("Address")).toHaveAccessibleDescription(/Enter the address of a repository/);
  await expect(page.getByLabel("Address")).toHaveValue("https://example.org/tea");
});

test("source is written, and a fault is shown at its line", async ({ page, server, scripts }) => {
  const base = await lists(page, server, scripts);
  await page.goto(`${base}/transformations/add`);
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("Shout");
  await page.getByRole("button", { name: "Write plugin" }).click();
  await page.waitForURL("**/source");
  await alive(page, scripts);
  const text = page.getByLabel("Text of the file");
  await expect(text).toHaveValue(/export function processEvent/);
  await text.fill("export function processEvent(event) {\n  event.event = \n}\n");
  await page.getByRole("button", { name: "Save file" }).click();
  await page.waitForURL("**file=index.js**");
  await alive(page, scripts);
  await expect(page.getByText("The source is stored, but it cannot be run as it is:")).toBeVisible();
  await expect(page.getByRole("link", { name: /^Go to line \d+$/ })).toBeVisible();
  await checkPage(page, "source with a fault");
  await text.fill("export function processEvent(event) {\n  event.event = event.event.toUpperCase()\n  return event\n}\n");
  await save(page, "Save file");
  await expect(page.getByText("it cannot be run as it is")).toHaveCount(0);
  await page.getByRole("main").getByRole("link", { name: "Shout" }).click();
  await page.waitForURL("**/plugins/transformations/*");
  await expect(page.getByText("processEvent")).toBeVisible();
});

test("an invalid archive is refused at the field", async ({ page, server, scripts }) => {
  const base = await lists(page, server, scripts);
  await page.goto(`${base}/frontend-apps/add`);
  await alive(page, scripts);
  await page.getByLabel("Archive", { exact: true }).setInputFiles({ name: "tea.zip", mimeType: "application/zip", buffer: Buffer.from("no zip") });
  await page.getByRole("button", { name: "Add from archive" }).click();
  await page.waitForURL("**/frontend-apps/add**");
  await expect(page.getByLabel("Archive", { exact: true })).toHaveAttribute("aria-invalid", "true");
});

test("the empty list of import apps explains them", async ({ page, server, scripts }) => {
  const base = await lists(page, server, scripts);
  await page.goto(`${base}/import-apps`);
  await expect(page.getByRole("heading", { name: "No import app yet" })).toBeVisible();
  await page.goto(`${base}/import-apps/add`);
  await expect(page.getByText("The catalogue has no plugin of this kind yet.")).toBeVisible();
});

test("a plugin is removed", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const group = "/api/organizations/@current/pipeline_destinations/";
  const made = await call(server, key, "POST", group, { plugin_type: "source", name: "Hush" });
  await page.goto(`${await lists(page, server, scripts)}/destinations/${made.id}`);
  await alive(page, scripts);
  const ending = page.getByRole("region", { name: "Remove plugin" });
  await expect(ending.getByText("Its source")).toBeVisible();
  const remove = ending.getByRole("button", { name: "Remove plugin" });
  await ending.getByLabel("Name of the plugin").fill("Whisper");
  if (scripts) await expect(remove).toBeDisabled();
  else {
    await remove.click();
    await expect(ending.getByText("Type the name exactly: Hush")).toBeVisible();
  }
  await ending.getByLabel("Name of the plugin").fill("Hush");
  await remove.click();
  await page.waitForURL("**/plugins/destinations");
  await expect(page.getByText("Removed Hush.")).toBeVisible();
  await expect(page.getByRole("link", { name: "Hush" })).toHaveCount(0);
});
