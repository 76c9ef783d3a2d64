// Personal API keys: create, shown once, used, replaced, revoked.

import { alive, enter, expect, test } from "./helpers";

test.describe.configure({ mode: "serial" });

let value = "";

test("a new key is shown once and works", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/account/keys");
  await alive(page, scripts);
  await page.getByRole("link", { name: "Create a key" }).click();
  await page.getByLabel("Label").fill("Nightly report");
  if (scripts) await expect(page.getByText(/^Can read everything you can see until /)).toBeVisible();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  value = (await page.locator(".reveal-value code").textContent()) ?? "";
  expect(value).toMatch(/^phx_\w{20,}/);

  const use = () => fetch(`${server.url}/api/organizations/`, { headers: { Authorization: `Bearer ${value}` } });
  expect((await use()).status).toBe(200);

  await page.reload();
  await expect(page.getByText("There is no value to show")).toBeVisible();
  expect(await page.content()).not.toContain(value);
});

test("a key that may do nothing is refused", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/account/keys/new");
  await alive(page, scripts);
  await page.getByLabel("Label").fill("Nothing");
  await page.getByLabel("Custom").check();
  await expect(page.getByRole("group", { name: "Projects" })).toBeVisible();
  await page.getByRole("button", { name: "Create key" }).click();
  await expect(page.getByText("Choose at least one scope.")).toBeVisible();
});

test("custom scopes", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/account/keys/new");
  await alive(page, scripts);
  await page.getByLabel("Label").fill("Writer");
  await page.getByLabel("Custom").check();
  await page.getByRole("group", { name: "Organizations" }).getByLabel("Read").check();
  await page.getByRole("group", { name: "Projects" }).getByLabel("Write").check();
  await page.getByLabel("Expires").selectOption("0");
  if (scripts) await expect(page.getByText("Can read organizations and write projects, for ever.")).toBeVisible();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  await page.getByRole("link", { name: "I have stored it" }).click();
  const key = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "Writer" }) });
  await expect(key.getByText("organization:read")).toBeVisible();
  await expect(key.getByText("project:write")).toBeVisible();
});

test("replace and revoke", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/account/keys");
  await alive(page, scripts);
  const key = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "Nightly report" }) });
  await key.getByText("Replace value").first().click();
  await key.getByRole("button", { name: "Replace value" }).click();
  await page.waitForURL("**/account/keys/reveal");
  const replaced = (await page.locator(".reveal-value code").textContent()) ?? "";
  expect(replaced).toMatch(/^phx_/);
  expect(replaced).not.toBe(value);
  const use = (bearer: string) =>
    fetch(`${server.url}/api/organizations/`, { headers: { Authorization: `Bearer ${bearer}` } });
  expect((await use(value)).status).toBe(401);
  expect((await use(replaced)).status).toBe(200);

  await page.getByRole("link", { name: "I have stored it" }).click();
  await alive(page, scripts);
  await key.getByText("Revoke").first().click();
  await key.getByRole("button", { name: "Revoke key" }).click();
  await expect(page.getByRole("heading", { name: "Nightly report" })).toHaveCount(0);
  expect((await use(replaced)).status).toBe(401);
});
