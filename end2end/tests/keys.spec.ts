// Personal API keys: create, shown once, used, refused, changed, rotated, revoked.

import { alive, checkPage, enter, expect, newKey, openMenu, person, save, shell, shot, test } from "./helpers";

test("a new key is shown once and works", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/account/keys");
  await alive(page, scripts);
  await page.getByRole("link", { name: "Create a key" }).click();
  await page.getByLabel("Label").fill("Nightly report");
  if (scripts) await expect(page.getByText(/^Can read everything you can see until /)).toBeVisible();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  const value = (await page.locator(".reveal-value code").textContent()) ?? "";
  expect(value).toMatch(/^phx_\w{20,}/);

  const use = () => fetch(`${server.url}/api/organizations/`, { headers: { Authorization: `Bearer ${value}` } });
  expect((await use()).status).toBe(200);

  await page.reload();
  await expect(page.getByText("There is no value to show")).toBeVisible();
  await expect(page.getByRole("link", { name: "Rotate" })).toBeVisible();
  expect(await page.content()).not.toContain(value);
});

test("a key without scopes is refused", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/account/keys/new");
  await alive(page, scripts);
  await page.getByLabel("Label").fill("Nothing");
  await page.getByLabel("Custom").check();
  await expect(page.getByRole("group", { name: "Projects" })).toBeVisible();
  await page.getByRole("button", { name: "Create key" }).click();
  await expect(page.locator("#scopes-fault")).toHaveText("Choose at least one scope.");
});

test("custom scopes", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/account/keys/new");
  await alive(page, scripts);
  await page.getByLabel("Label").fill("Writer");
  await page.getByLabel("Custom").check();
  await page.getByRole("group", { name: "Organizations" }).getByLabel("Read").check();
  await page.getByRole("group", { name: "Projects" }).getByLabel("Write").check();
  await page.getByLabel("Expires").selectOption("0");
  if (scripts) await expect(page.getByText("Can read organizations and write projects. It never expires.")).toBeVisible();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  await page.getByRole("link", { name: "I have stored it" }).click();
  const key = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "Writer" }) });
  await expect(key.getByText("organization:read")).toBeVisible();
  await expect(key.getByText("project:write")).toBeVisible();
});

test("presets list their scopes, and a last day can be chosen", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/account/keys/new");
  await alive(page, scripts);
  await page.getByLabel("Label").fill("Exporter");
  await page.getByRole("radio", { name: /^Exports/ }).check();
  await page.getByLabel("Expires").selectOption("date");
  await page.getByLabel("Last day").fill("2099-02-18");
  if (scripts) {
    const sentence = "Can read organizations and projects and write exports until 18 Feb 2099.";
    await expect(page.getByText(sentence)).toBeVisible();
  }
  await page.getByRole("radio", { name: "Some projects" }).check();
  await checkPage(page, "new key");
  await page.getByRole("button", { name: "Create key" }).click();
  await expect(page.getByText("Choose at least one project, or all.")).toBeVisible();
  await page.getByRole("checkbox", { name: new RegExp(person.project) }).check();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  // The command works as printed, whatever the key is limited to.
  const command = page.getByRole("figure", { name: "Try it" }).locator("pre");
  expect(JSON.parse(await shell((await command.textContent()) ?? "")).label).toBe("Exporter");
  await page.getByRole("link", { name: "I have stored it" }).click();
  const key = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "Exporter" }) });
  await expect(key.getByText(`project ${person.project}`)).toBeVisible();
  // The end of the day, in the time zone of the viewer.
  await expect(key.getByText(/2099-02-1[89]/)).toBeVisible();
});

test("a refused call is shown with a button that adds the scope", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/account/keys/new");
  await alive(page, scripts);
  await page.getByLabel("Label").fill("Narrow");
  await page.getByLabel("Custom").check();
  await page.getByRole("group", { name: "Organizations" }).getByLabel("Read").check();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  const narrow = (await page.locator(".reveal-value code").textContent()) ?? "";
  const list = () => fetch(`${server.url}/api/projects/`, { headers: { Authorization: `Bearer ${narrow}` } });
  expect((await list()).status).toBe(403);

  await page.goto("/account/keys");
  await alive(page, scripts);
  const key = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "Narrow" }) });
  await key.getByText("1 call refused in the last 7 days").click();
  await expect(key.getByText("GET /api/projects/").last()).toBeVisible();
  await checkPage(page, "keys with a refused call");
  await shot(page, "keys");
  await key.getByRole("button", { name: "Add scope project:read" }).click();
  await expect(key.getByRole("list", { name: "Scopes" }).getByText("project:read")).toBeVisible();
  expect((await list()).status).toBe(200);
});

test("a key is renamed and gets another scope", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/account/keys/new");
  await alive(page, scripts);
  await page.getByLabel("Label").fill("Draft");
  await page.getByLabel("Custom").check();
  await page.getByRole("group", { name: "Projects" }).getByLabel("Write").check();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  await page.goto("/account/keys");
  await alive(page, scripts);
  await openMenu(page, "Draft");
  await page.getByRole("link", { name: "Edit" }).click();
  await alive(page, scripts);
  const projects = page.getByRole("group", { name: "Projects" });
  await expect(projects.getByLabel("Write")).toBeChecked();
  await expect(projects.getByText("Can replace project keys and delete projects.")).toBeVisible();
  await projects.getByLabel("Read").check();
  await page.getByLabel("Label").fill("Reader");
  await save(page, "Save key");
  await expect(page.getByRole("heading", { name: "API key Reader" })).toBeVisible();
  await expect(page.getByRole("list", { name: "Scopes" }).getByText("project:read")).toBeVisible();
  await checkPage(page, "one key");
});

test("rotate with overlap, end the old value, revoke", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const value = await newKey(page, scripts, "Weekly report");
  await page.goto("/account/keys");
  await alive(page, scripts);
  await openMenu(page, "Weekly report");
  await page.getByRole("link", { name: "Rotate" }).click();
  await alive(page, scripts);
  await page.getByLabel("The old value works").selectOption("hour");
  await page.getByRole("button", { name: "Rotate key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  const rotated = (await page.locator(".reveal-value code").textContent()) ?? "";
  expect(rotated).toMatch(/^phx_/);
  expect(rotated).not.toBe(value);
  const use = (bearer: string) =>
    fetch(`${server.url}/api/organizations/`, { headers: { Authorization: `Bearer ${bearer}` } });
  expect((await use(value)).status).toBe(200);
  expect((await use(rotated)).status).toBe(200);

  await page.getByRole("link", { name: "I have stored it" }).click();
  await alive(page, scripts);
  const key = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "Weekly report" }) });
  await expect(key.getByText("Old value works")).toBeVisible();
  await key.getByRole("button", { name: "End the old value now" }).click();
  await expect(key.getByText("Old value works")).toHaveCount(0);
  expect((await use(value)).status).toBe(401);
  expect((await use(rotated)).status).toBe(200);

  await alive(page, scripts);
  await openMenu(page, "Weekly report");
  await page.getByRole("button", { name: "Revoke..." }).click();
  const dialog = page.getByRole("dialog", { name: "Revoke the key Weekly report?" });
  await dialog.getByRole("button", { name: "Revoke key" }).click();
  await expect(page.getByRole("heading", { name: "Weekly report" })).toHaveCount(0);
  expect((await use(rotated)).status).toBe(401);
});
