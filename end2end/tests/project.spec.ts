// A project: added, named, its key rotated while events come, and its end.

import { alive, apiKey, call, checkPage, enter, expect, newOrganization, person, post, save, send, shot, test } from "./helpers";

test("a project is added and receives a test event", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const id = new URL(page.url()).pathname.split("/")[2];
  await page.goto(`/projects/${id}/settings`);
  await page.getByRole("link", { name: "organization settings" }).click();
  await page.waitForURL("**/organizations/*");
  await page.goto(`${new URL(page.url()).pathname}/projects/new`);
  await alive(page, scripts);
  await page.getByLabel("Name").fill("Shop staging");
  await page.getByLabel("Time zone").fill("Mars/Phobos");
  await page.getByRole("button", { name: "Create project" }).click();
  await expect(page.getByText("Enter a time zone by its IANA name")).toBeVisible();
  await page.getByLabel("Time zone").fill("Europe/Berlin");
  await page.getByRole("button", { name: "Create project" }).click();
  await page.waitForURL("**/projects/*/start");
  await alive(page, scripts);

  await page.getByRole("button", { name: "Send a test event" }).click();
  // Not at the top of the page: where it appears.
  if (!scripts) await expect(page).toHaveURL(/#step-check$/);
  await expect(page.getByRole("heading", { name: "Check that it arrives" })).toBeInViewport();
  await expect(async () => {
    if (!scripts) await page.reload();
    await expect(page.getByRole("link", { name: "test event" }).first()).toBeVisible({ timeout: 2_000 });
  }).toPass();
  await checkPage(page, "start");
  await shot(page, "start");
});

test("the checklist follows the data and can be hidden", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { project } = await newOrganization(server, key);
  const start = `/projects/${project}/start`;
  await page.goto(start);
  await expect(page.getByText("0 of 3 done")).toBeVisible();
  await page.goto("/account/keys/new");
  await alive(page, scripts);
  await page.getByLabel("Label").fill("Reports");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  await page.goto(start);
  await alive(page, scripts);
  await expect(page.getByText("1 of 3 done")).toBeVisible();
  await page.getByRole("button", { name: "Hide this list" }).click();
  await expect(page.getByText("1 of 3 done")).toHaveCount(0);
  await page.getByRole("button", { name: "Show the checklist" }).click();
  await expect(page.getByText("1 of 3 done")).toBeVisible();
});

test("the overview has the numbers of the project, and each leads to its page", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { project, token } = await newOrganization(server, key);
  const overview = `/projects/${project}`;
  await page.goto(overview);
  await expect(page.getByRole("link", { name: "Send the first event" })).toHaveAttribute("href", `${overview}/start`);
  for (const distinct_id of ["ada", "grace", "ada"]) await send(server, token, { event: "order paid", distinct_id });
  await send(server, token, { event: "of no one" });
  const number = (name: string) => page.locator(".overview-number", { has: page.getByRole("link", { name }) });
  await expect(async () => {
    await page.goto(overview);
    await expect(number("Events today")).toContainText("3", { timeout: 1_000 });
    await expect(number("Active persons")).toContainText("2", { timeout: 1_000 });
    await expect(number("Dropped events")).toContainText("25.0%", { timeout: 1_000 });
  }).toPass();
  await alive(page, scripts);
  await expect(page.locator("#names")).toContainText("order paid");
  await expect(page.locator("#health")).toContainText("No failing exports");
  await expect(page.locator("#health")).toContainText("No failing transformations");
  await checkPage(page, "overview");
  await shot(page, "overview");
  await page.getByRole("link", { name: "Continue the set-up" }).click();
  await expect(page).toHaveURL(/\/start$/);
  await page.goto(overview);
  await alive(page, scripts);
  await page.getByRole("link", { name: "Dropped events" }).click();
  await expect(page).toHaveURL(/\/health\?range=30d$/);
});

test("general settings show the facts of the project", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { project, token } = await newOrganization(server, key);
  await send(server, token, { event: "stored", distinct_id: "me" });
  // An event is counted a moment after it was taken.
  await expect(async () => {
    await page.goto(`/projects/${project}/settings`);
    await expect(page.getByText("1 stored event, with persons and groups")).toBeVisible({ timeout: 1_000 });
  }).toPass();
  await alive(page, scripts);
  await expect(page.getByText(token)).toBeVisible();
  await page.getByLabel("Name", { exact: true }).fill("Shop");
  await save(page, "Save settings");
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("Shop");
  await checkPage(page, "project settings");
  await shot(page, "project-settings");
});

test("events are kept for a shorter time only after the name was typed", async ({ page, server, scripts }) => {
  const { project } = await newOrganization(server, await apiKey(page, server, scripts));
  await page.goto(`/projects/${project}/settings`);
  await alive(page, scripts);
  const days = page.getByLabel("Days to keep events");
  const preview = page.getByRole("button", { name: "Preview change" });
  await days.fill("30");
  await preview.click();
  await expect(page.getByText("From now on, Weir removes events older than 30 days")).toBeInViewport();
  await alive(page, scripts);
  await checkPage(page, "event retention");
  const section = page.locator("#retention");
  await section.getByLabel("Name of the project").fill(person.project);
  await section.getByRole("button", { name: "Keep events for 30 days" }).click();
  await expect(page.getByText("Events are kept for 30 days.")).toBeVisible();
  await expect(days).toHaveValue("30");

  await alive(page, scripts);
  // The same number, twice: the second answer has the address of the first.
  for (let time = 0; time < 2; time++) {
    await preview.click();
    await expect(section.getByText("No change.")).toBeVisible();
    await alive(page, scripts);
    await expect(preview).toBeEnabled();
    await expect(preview).toHaveText("Preview change");
  }
  await days.fill("");
  await preview.click();
  await expect(page.getByText("Events will be kept for ever.")).toBeInViewport();
  await alive(page, scripts);
  await page.getByRole("button", { name: "Keep events longer" }).click();
  await expect(page.getByText("Events are kept for ever.")).toBeVisible();
  await expect(days).toHaveValue("");
});

test("the old key works beside the new one until it is ended", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { project, token: old } = await newOrganization(server, key);
  await send(server, old, { event: "early", distinct_id: "me" });
  await page.goto(`/projects/${project}/settings/keys`);
  await alive(page, scripts);
  await page.getByLabel("The old key works").selectOption("week");
  await page.getByRole("button", { name: "Rotate project key" }).click();
  await expect(page.getByText("Old key works", { exact: true })).toBeVisible();
  const table = page.getByRole("table", { name: "Events by project key" });
  const fresh = (await table.locator("code").first().textContent()) ?? "";
  expect(fresh).toMatch(/^phc_/);
  expect(fresh).not.toBe(old);
  await send(server, old, { event: "late", distinct_id: "me" });
  await send(server, fresh, { event: "new", distinct_id: "me" });
  await page.reload();
  await alive(page, scripts);
  await expect(table.getByRole("row", { name: /Old key/ })).toContainText("2");
  await checkPage(page, "project keys");
  await shot(page, "project-keys");

  await page.locator("summary", { hasText: "End the old key now" }).click();
  await page.getByRole("button", { name: "End the old key", exact: true }).click();
  await expect(page.getByText("Old key works", { exact: true })).toHaveCount(0);
  expect((await post(server, old, { event: "late", distinct_id: "me" })).status).toBe(401);
  expect((await post(server, fresh, { event: "new", distinct_id: "me" })).status).toBe(200);
});

test("a secret key is created and rotated", async ({ page, server, scripts }) => {
  const { project } = await newOrganization(server, await apiKey(page, server, scripts));
  await page.goto(`/projects/${project}/settings/keys`);
  await alive(page, scripts);
  await page.locator("summary", { hasText: "Create secret key" }).click();
  await page.getByRole("button", { name: "Create secret key" }).click();
  await expect(page.getByText("The project has a new secret key.")).toBeVisible();
  await alive(page, scripts);
  await page.locator("summary", { hasText: "Rotate secret key" }).click();
  const request = page.locator("details.confirm[open] details.api-request");
  await request.locator("summary").click();
  await expect(request.locator("pre")).toContainText(/-X PATCH '.*\/rotate_secret_token\/'/);
  await page.getByRole("button", { name: "Rotate secret key" }).click();
  await expect(page.getByText("The previous secret key works too.")).toBeVisible();
});

test("a project is deleted by typing its name", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { id } = await newOrganization(server, key);
  const made = await call(server, key, "POST", `/api/organizations/${id}/projects/`, { name: "Shop" });
  const settings = `/projects/${made.id}/settings`;
  expect((await page.goto(settings))?.status()).toBe(200);
  await alive(page, scripts);
  await page.getByLabel("Name of the project").fill("Shop");
  await page.getByRole("button", { name: "Delete project" }).click();
  await page.waitForURL("**/organizations/*");
  expect((await page.goto(settings))?.status()).toBe(404);
});
