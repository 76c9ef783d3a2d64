// Lists: files with their rows, actions on several entries, and the height of rows.

import type { Page } from "@playwright/test";
import { addTransformations, alive, apiKey, call, checkPage, enter, expect, install, join, newKey, newOrganization, projectKey, send, sent, test } from "./helpers";

/** Opens a page. */
async function open(page: Page, scripts: boolean, path: string): Promise<void> {
  await page.goto(path);
  await alive(page, scripts);
}

/** Selects entries by the names of their check boxes, one by one. */
async function select(page: Page, scripts: boolean, ...names: string[]): Promise<void> {
  for (const name of names) await page.getByRole("checkbox", { name: `Select ${name}` }).check();
  if (scripts) await expect(page.getByText(`${names.length} selected`)).toBeVisible();
}

test("lists are downloaded with their filter", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await send(server, await projectKey(page), { event: "cup bought", distinct_id: "ada", properties: { plan: "pro" } });
  const key = await apiKey(page, server, scripts);
  const { id } = (await call(server, key, "GET", "/api/organizations/")).results[0];
  await expect(async () => {
    expect((await call(server, key, "GET", "/api/projects/1/persons/")).results).not.toHaveLength(0);
  }).toPass();
  for (const [path, head] of [
    ["/account/keys", "id,label"],
    ["/organizations", "id,name"],
    [`/organizations/${id}`, "id,name"],
    [`/organizations/${id}/members?search=ada`, "id,first_name"],
    [`/organizations/${id}/activity?kind=PersonalAPIKey`, "id,time"],
    ["/projects/1/definitions?q=cup", "name,events_30d"],
    ["/projects/1/persons?q=ada", "id,name"],
    ["/projects/1/definitions/cup%20bought", "property,types"],
    ["/projects/1/settings/keys", "key,events_24h"],
    ["/instance/organizations", "id,name"],
  ] as const) {
    await open(page, scripts, path);
    const link = page.getByRole("link", { name: "Download CSV" });
    await expect(link).toHaveAttribute("href", `/_csv${path}`);
    const answer = await page.request.get(`/_csv${path}`);
    expect(answer.headers()["content-type"], path).toBe("text/csv; charset=utf-8");
    expect(answer.headers()["content-disposition"], path).toMatch(/^attachment; filename="[a-z0-9-]+\.csv"$/);
    expect((await answer.text()).replaceAll('"', ""), path).toMatch(new RegExp(`^${head},`));
  }
  // A page with several lists has a file for each.
  await open(page, scripts, "/account/security");
  const sessions = page.getByRole("link", { name: "Download CSV of sessions" });
  await expect(sessions).toHaveAttribute("href", "/_csv/account/security/sessions");
  await open(page, scripts, "/projects/1/persons?q=ada");
  await page.getByRole("row").filter({ hasText: "ada" }).first().getByRole("link").first().click();
  await expect(page.getByRole("link", { name: "Download CSV" })).toHaveAttribute("href", /^\/_csv\/projects\/1\/persons\/[^/]+\/events$/);
  await open(page, scripts, "/projects/1/persons?q=ada");
  const file = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download CSV" }).click();
  expect((await file).suggestedFilename()).toBe("persons-mill-race.csv");
});

test("exports are paused and resumed together", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { id, project } = await newOrganization(server, key);
  const body = { interval: "day", model: "events", team_id: project, destination: { type: "NoOp", config: {} } };
  await call(server, key, "POST", `/api/organizations/${id}/batch_exports/`, { ...body, name: "Lake" });
  await open(page, scripts, `/organizations/${id}/exports`);
  await expect(page.getByRole("checkbox", { name: "Select Lake" })).toHaveCount(0);
  for (const name of ["Mill", "Weir"]) {
    await call(server, key, "POST", `/api/organizations/${id}/batch_exports/`, { ...body, name });
  }
  const states = async () => (await call(server, key, "GET", `/api/organizations/${id}/batch_exports/`)).results.filter((one: any) => one.paused).length;

  await open(page, scripts, `/organizations/${id}/exports`);
  // A button without a selection changes nothing.
  await page.getByRole("button", { name: "Pause selected", exact: true }).click();
  await expect(page.getByText("Select at least one entry.")).toBeVisible();
  await alive(page, scripts);
  await select(page, scripts, "Lake", "Weir");
  await checkPage(page, "selected exports");
  await sent(page, () => page.getByRole("button", { name: "Pause selected", exact: true }).click());
  await expect(page.getByText("Paused 2 exports.")).toBeVisible();
  await expect.poll(states).toBe(2);
  await expect(page.getByRole("checkbox", { name: "Select Lake" })).not.toBeChecked();
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Undo" }).click());
  await expect(page.getByText("Unpaused 2 exports.")).toBeVisible();
  expect(await states()).toBe(0);

  await alive(page, scripts);
  if (scripts) {
    await page.getByRole("checkbox", { name: "Select all" }).check();
    await expect(page.getByText("3 selected")).toBeVisible();
    await page.getByRole("checkbox", { name: "Select Mill" }).uncheck();
    await expect(page.getByText("2 selected")).toBeVisible();
  } else {
    await select(page, scripts, "Lake", "Weir");
  }
  // Enter in a check box presses no button: only the entry that is left is paused.
  await page.getByRole("checkbox", { name: "Select Weir" }).press("Enter");
  await page.getByRole("checkbox", { name: "Select Weir" }).uncheck();
  await sent(page, () => page.getByRole("button", { name: "Pause selected", exact: true }).click());
  await expect(page.getByText("Paused 1 export.")).toBeVisible();
  expect(await states()).toBe(1);
});

test("persons are deleted together, after their number was typed", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const project = await projectKey(page);
  const names = ["bulk-ada", "bulk-bob", "bulk-cyd"];
  for (const name of names) await send(server, project, { event: "seen", distinct_id: name });
  const list = "/projects/1/persons?q=bulk-";
  await expect(async () => {
    await page.goto(list);
    await expect(page.getByRole("row").filter({ hasText: "bulk-" })).toHaveCount(3, { timeout: 2_000 });
  }).toPass();
  await alive(page, scripts);
  await select(page, scripts, "bulk-ada", "bulk-bob");
  await page.getByRole("button", { name: "Delete selected..." }).click();
  await page.waitForURL(/ids/);
  await alive(page, scripts);
  await expect(page.getByText("Delete 2 persons?")).toBeVisible();
  await expect(page.getByRole("main").locator(".alert li")).toHaveCount(2);
  await page.getByRole("link", { name: "Cancel" }).click();
  await expect(page.getByText("Delete 2 persons?")).toHaveCount(0);
  await alive(page, scripts);
  await select(page, scripts, "bulk-ada", "bulk-bob");
  await page.getByRole("button", { name: "Delete selected..." }).click();
  await page.waitForURL(/ids/);
  await alive(page, scripts);
  await page.getByLabel("What is deleted").fill("2 persons");
  await page.getByRole("button", { name: "Delete persons" }).click();
  await expect(page.getByText("Deleted 2 persons.")).toBeVisible();
  await page.goto(list);
  await expect(page.getByRole("row").filter({ hasText: "bulk-" })).toHaveCount(1);
  await expect(page.getByRole("row").filter({ hasText: "bulk-cyd" })).toHaveCount(1);
});

test("the projects of a plugin are switched together", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { id, project } = await newOrganization(server, key);
  const plugin = await install(server, key, id, "bot-filter");
  for (const [at, name] of ["One", "Two"].entries()) {
    const body = { plugin, name, order: at + 1, enabled: false, config: {} };
    await call(server, key, "POST", `/api/projects/${project}/pipeline_transformation_configs/`, body);
  }
  await open(page, scripts, `/organizations/${id}/plugins/transformations/${plugin}`);
  const table = page.getByRole("table", { name: "Projects that use it" });
  await select(page, scripts, "One", "Two");
  await sent(page, () => page.getByRole("button", { name: "Switch selected on", exact: true }).click());
  await expect(page.getByText("Switched on 2 configs.")).toBeVisible();
  await expect(table.getByText("On", { exact: true })).toHaveCount(2);
});

test("what fails is said, and the rest is done", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { id, project } = await newOrganization(server, key);
  const body = { interval: "day", model: "events", team_id: project, destination: { type: "NoOp", config: {} } };
  const path = `/api/organizations/${id}/batch_exports/`;
  const made = [];
  for (const name of ["Lake", "Mill"]) made.push((await call(server, key, "POST", path, { ...body, name })).id);
  await open(page, scripts, `/organizations/${id}/exports`);
  await select(page, scripts, "Lake", "Mill");
  await call(server, key, "DELETE", `${path}${made[0]}/`);
  await sent(page, () => page.getByRole("button", { name: "Pause selected", exact: true }).click());
  await expect(page.getByText(/^Paused 1 of 2 exports\..+This does not exist/)).toBeVisible();
});

test("invites are revoked together", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { id } = await newOrganization(server, key);
  for (const name of ["a", "b", "c"]) {
    await call(server, key, "POST", `/api/organizations/${id}/invites/`, { target_email: `${name}@weir.example` });
  }
  await open(page, scripts, `/organizations/${id}/invites`);
  await select(page, scripts, "a@weir.example", "c@weir.example");
  await page.getByRole("button", { name: "Revoke selected..." }).click();
  const dialog = page.getByRole("dialog", { name: "Revoke the selected invites?" });
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect(dialog).toBeHidden();
  await page.getByRole("button", { name: "Revoke selected..." }).click();
  await sent(page, () => dialog.getByRole("button", { name: "Revoke invites" }).click());
  await expect(page.getByText("Revoked 2 invites.")).toBeVisible();
  await expect(page.getByRole("row").filter({ hasText: "@weir.example" })).toHaveCount(1);
  await expect(page.getByRole("row").filter({ hasText: "b@weir.example" })).toHaveCount(1);
  // Nothing is left to select.
  await expect(page.getByRole("checkbox", { name: "Select b@weir.example" })).toHaveCount(0);
});

test("members are removed together, after a question with their names", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { id } = await newOrganization(server, key);
  for (const name of ["Barbara", "Edsger"]) {
    const email = `${name.toLowerCase()}-${id.slice(0, 8)}@weir.example`;
    await join(server, key, id, { name, email, password: "nine slow otters in a barn" });
  }
  await open(page, scripts, `/organizations/${id}/members`);
  await select(page, scripts, "Barbara", "Edsger");
  await page.getByRole("button", { name: "Remove selected..." }).click();
  await page.waitForURL(/ids/);
  await alive(page, scripts);
  await expect(page.getByText("Remove 2 members?")).toBeVisible();
  const named = page.getByRole("main").locator(".alert li");
  await expect(named).toHaveCount(2);
  await expect(named.filter({ hasText: "Barbara" })).toHaveCount(1);
  await checkPage(page, "question before members are removed");
  await page.getByRole("link", { name: "Cancel" }).click();
  await expect(page.getByText("Remove 2 members?")).toHaveCount(0);
  await alive(page, scripts);
  await select(page, scripts, "Barbara", "Edsger");
  await page.getByRole("button", { name: "Remove selected..." }).click();
  await page.waitForURL(/ids/);
  await alive(page, scripts);
  await page.getByRole("button", { name: "Remove members" }).click();
  await page.waitForURL(`**/organizations/${id}/members`);
  await expect(page.getByText("Removed 2 members.")).toBeVisible();
  await expect(page.getByText("Only you so far")).toBeVisible();
});

test("keys are revoked together", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  for (const label of ["Old one", "Old two"]) await newKey(page, scripts, label);
  await open(page, scripts, "/account/keys");
  await select(page, scripts, "Old one", "Old two");
  await page.getByRole("button", { name: "Revoke selected..." }).click();
  await sent(page, () => page.getByRole("button", { name: "Revoke keys" }).click());
  await expect(page.getByText("Revoked 2 keys.")).toBeVisible();
  for (const name of ["Old one", "Old two"]) await expect(page.getByRole("heading", { name })).toHaveCount(0);
});

test("transformations are switched together", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const organization = await newOrganization(server, key);
  await addTransformations(server, key, organization, [{ entry: "bot-filter", name: "Bots" }]);
  const configs = `/api/projects/${organization.project}/pipeline_transformation_configs/`;
  const [{ plugin }] = (await call(server, key, "GET", configs)).results;
  await call(server, key, "POST", configs, { plugin, order: 2, enabled: true, config: {}, name: "More bots" });
  await open(page, scripts, `/projects/${organization.project}/transformations`);
  await select(page, scripts, "Bots", "More bots");
  await sent(page, () => page.getByRole("button", { name: "Switch selected off" }).click());
  await expect(page.getByText("Switched off 2 transformations.")).toBeVisible();
  await expect(page.getByRole("button", { name: /^Switch on / })).toHaveCount(2);
});

test("rows are compact where that is preferred", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await send(server, await projectKey(page), { event: "cup bought", distinct_id: "ada" });
  await open(page, scripts, "/account/preferences");
  await page.getByRole("radio", { name: "Compact" }).check();
  await sent(page, () => page.getByRole("button", { name: "Save preferences" }).click());
  await expect(page.locator("html")).toHaveAttribute("data-rows", "compact");
  // With `paused` the page does not reload itself.
  await open(page, scripts, "/projects/1/events?paused=1");
  await expect(page.locator("html")).toHaveAttribute("data-rows", "compact");
  await page.locator(".columns-menu > summary").click();
  await expect(page.getByRole("button", { name: "Compact rows" })).toBeHidden();
  await sent(page, () => page.getByRole("button", { name: "Comfortable rows" }).click());
  await expect(page.locator("html")).toHaveAttribute("data-rows", "comfortable");
});
