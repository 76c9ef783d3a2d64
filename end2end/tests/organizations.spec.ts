// Organizations: create, rename, delete by typing the name.

import { alive, apiKey, call, enter, expect, person, post, projectKey, save, send, test } from "./helpers";

test("create", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/organizations");
  await alive(page, scripts);
  await expect(page.getByRole("link", { name: person.organization })).toBeVisible();
  await page.getByRole("main").getByRole("link", { name: "New organization" }).click();
  await page.getByLabel("Name").fill("</title><b>Second Shop");
  await page.getByRole("button", { name: "Create organization" }).click();
  await page.waitForURL("**/projects/*/start");
  // Its key works immediately.
  await send(server, await projectKey(page), { event: "first", distinct_id: "ada" });
  await page.goto("/organizations");
  await expect(page.getByRole("main").getByRole("link", { name: "</title><b>Second Shop" })).toBeVisible();
});

test("a blank name is refused at the field", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/organizations/new");
  await alive(page, scripts);
  await page.getByLabel("Name").fill("   ");
  await page.getByRole("button", { name: "Create organization" }).click();
  await expect(page.getByLabel("Name")).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByLabel("Name")).toHaveAccessibleDescription(/may not be blank/);
});

test("rename", async ({ page, server, scripts }) => {
  const api = await apiKey(page, server, scripts);
  await call(server, api, "POST", "/api/organizations/", { name: "</title><b>Third Shop" });
  await page.goto("/organizations");
  await alive(page, scripts);
  await page.getByRole("main").getByRole("link", { name: "</title><b>Third Shop" }).click();
  await expect(page).toHaveTitle("Organization settings - </title><b>Third Shop - Weir");
  await page.getByLabel("Name", { exact: true }).fill("Third Shop");
  await save(page, "Save name");
  await page.goto("/organizations");
  await expect(page.getByRole("main").getByRole("link", { name: "Third Shop" })).toBeVisible();
});

test("delete by typing the name", async ({ page, server, scripts }) => {
  const api = await apiKey(page, server, scripts);
  const made = await call(server, api, "POST", "/api/organizations/", { name: "Fourth Shop" });
  const key = made.teams[0].api_token;
  await send(server, key, { event: "in time", distinct_id: "ada" });
  await page.goto("/organizations");
  await alive(page, scripts);
  await page.getByRole("main").getByRole("link", { name: "Fourth Shop" }).click();
  await expect(page.getByText("Project keys stop working immediately.")).toBeVisible();
  const typed = page.getByLabel("Name of the organization");
  const button = page.getByRole("button", { name: "Delete organization" });
  await typed.fill("second instance");
  if (scripts) {
    await expect(button).toBeDisabled();
    await expect(page.getByText("Type the name to continue.")).toBeVisible();
  } else {
    await button.click();
    await expect(typed).toHaveAccessibleDescription(/Type the name exactly/);
  }
  await typed.fill("Fourth Shop");
  await button.click();
  await page.waitForURL("**/organizations");
  // As was promised.
  expect((await post(server, key, { event: "too late", distinct_id: "ada" })).status).toBe(401);
  await expect(page.getByRole("main").getByRole("link", { name: "Fourth Shop" })).toHaveCount(0);
  await expect(page.getByRole("main").getByRole("link", { name: person.organization })).toBeVisible();
});

test("settings of a project", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/projects/1/settings");
  await alive(page, scripts);
  await expect(page.getByText(/^phc_\w+$/)).toBeVisible();
  await page.getByLabel("Name", { exact: true }).fill("Tail race");
  await page.getByLabel("Time zone").fill("nowhere");
  await page.getByLabel(/Remove client IP addresses/).check();
  await page.getByRole("button", { name: "Save settings" }).click();
  await expect(page.getByLabel("Time zone")).toHaveAccessibleDescription(/such as UTC or Europe\/Berlin/);
  await expect(page.getByLabel("Time zone")).toBeFocused();
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("Tail race");
  await expect(page.getByLabel(/Remove client IP addresses/)).toBeChecked();
  await page.getByLabel("Time zone").fill("Europe/Berlin");
  await save(page, "Save settings");
  await expect(page.locator(".switch-project")).toHaveText("Tail race");
  await page.reload();
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("Tail race");
  await expect(page.getByLabel("Time zone")).toHaveValue("Europe/Berlin");
  await expect(page.getByLabel(/Remove client IP addresses/)).toBeChecked();
  await expect(page.getByLabel(/Store events without persons/)).not.toBeChecked();
  await page.getByLabel(/Store events without persons/).check();
  await save(page, "Save settings");
  await page.reload();
  await expect(page.getByLabel(/Store events without persons/)).toBeChecked();
  await page.getByLabel(/Store events without persons/).uncheck();
  await save(page, "Save settings");
  await page.reload();
  await expect(page.getByLabel(/Store events without persons/)).not.toBeChecked();
});
