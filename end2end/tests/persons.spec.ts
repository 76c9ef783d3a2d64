// Persons and groups: who sent events, how ids came together, what is known.

import type { Page } from "@playwright/test";
import { alive, checkPage, enter, expect, person, projectKey, send, type Server, test } from "./helpers";

test("before the first event both pages explain what is missing", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/projects/1/persons");
  await expect(page.getByText("Persons appear with the first event.")).toBeVisible();
  await page.goto("/projects/1/groups");
  await expect(page.getByRole("heading", { name: "No group yet" })).toBeVisible();
  await expect(page.locator("pre")).toContainText("$groupidentify");
  await checkPage(page, "no group");
});

/** The servers that have the events below. */
const prepared = new WeakSet<Server>();

/** Sends the events of a person with two ids, in a group, once per server. */
async function prepare(page: Page, server: Server): Promise<void> {
  if (prepared.has(server)) return;
  const key = await projectKey(page);
  await send(server, key, { event: "$pageview", distinct_id: "anon-7" });
  await send(server, key, {
    event: "$identify",
    distinct_id: "ada-7",
    properties: { $anon_distinct_id: "anon-7", $set: { email: "ada7@example.com", plan: "pro" } },
  });
  await send(server, key, {
    event: "$groupidentify",
    distinct_id: "ada-7",
    properties: { $group_type: "company", $group_key: "acme/tea", $group_set: { name: "Acme Tea" } },
  });
  await send(server, key, { event: "plan paid", distinct_id: "ada-7", properties: { $groups: { company: "acme/tea" } } });
  prepared.add(server);
}

test("a person is found, and shows how its ids were merged", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await prepare(page, server);

  // Events are readable a moment after they were taken.
  const link = page.getByRole("link", { name: "ada7@example.com" });
  await expect(async () => {
    await page.goto("/projects/1/persons?q=ada7%40example");
    await expect(link).toBeVisible({ timeout: 1_000 });
  }).toPass();
  await alive(page, scripts);
  await checkPage(page, "persons");
  await page.getByLabel("Distinct id, name, e-mail address, or property = value").fill("no such person");
  await page.getByLabel("Distinct id, name, e-mail address, or property = value").press("Enter");
  await expect(page).toHaveURL(/q=no/);
  await page.getByLabel("Distinct id, name, e-mail address, or property = value").fill("plan = pro");
  await page.getByLabel("Distinct id, name, e-mail address, or property = value").press("Enter");
  await expect(link).toBeVisible();
  await page.goto("/projects/1/persons?q=plan+%3D+none");
  await expect(link).toHaveCount(0);
  await page.getByRole("link", { name: "Clear filters" }).click();
  await expect(link).toBeVisible();

  await expect(async () => {
    await page.goto("/projects/1/persons");
    await link.click({ timeout: 2_000 });
    await expect(page.getByRole("heading", { level: 1, name: "ada7@example.com" })).toBeVisible();
    await expect(page.getByText("plan paid").first()).toBeVisible({ timeout: 1_000 });
  }).toPass();
  await expect(page.getByText("Merged into this person at")).toBeVisible();
  const crumbs = page.getByRole("navigation", { name: "Breadcrumb" });
  await expect(crumbs.locator("[aria-current=page]")).toHaveText("ada7@example.com");
  const properties = page.getByRole("table", { name: "Properties of the person" });
  await expect(properties).toContainText("ada7@example.com");
  await expect(properties).toContainText("$identify");
  await alive(page, scripts);
  await checkPage(page, "person");

  await page.getByLabel("Event name").fill("plan paid");
  await page.getByLabel("Event name").press("Enter");
  await expect(page).toHaveURL(/event=plan/);
  await expect(page.locator(".timeline > li")).toHaveCount(1);
  await page.locator(".timeline summary").click();
  await expect(page.locator(".timeline pre")).toContainText("acme/tea");
});

test("a group shows its properties, its members and its events", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await prepare(page, server);
  const link = page.getByRole("link", { name: "ada7@example.com" });
  await expect(async () => {
    await page.goto("/projects/1/groups/company");
    await page.getByRole("link", { name: "Acme Tea" }).click({ timeout: 1_000 });
    await expect(link).toBeVisible({ timeout: 1_000 });
    await expect(page.locator(".timeline")).toContainText("plan paid", { timeout: 1_000 });
  }).toPass();
  await page.goto("/projects/1/groups");
  await page.getByRole("navigation", { name: "Group types" }).getByRole("link", { name: "company" }).click();
  await expect(page).toHaveURL(/\/groups\/company$/);
  await alive(page, scripts);
  await checkPage(page, "groups");
  await page.getByRole("link", { name: "Acme Tea" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Acme Tea" })).toBeVisible();
  const crumbs = page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("listitem");
  await expect(crumbs).toHaveText([person.organization, person.project, "Groups", "company", "Acme Tea"]);
  await expect(page.getByRole("table", { name: "Persons seen with the group" })).toContainText("ada7@example.com");
  await expect(page.locator(".timeline")).toContainText("plan paid");
  await alive(page, scripts);
  await checkPage(page, "group");
  await link.click();
  await expect(page).toHaveURL(/\/persons\//);
  await expect(page.getByRole("link", { name: "company: acme/tea" })).toBeVisible();
});

test("groups that events only name are shown as such", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await prepare(page, server);
  const key = await projectKey(page);
  await send(server, key, { event: "plan paid", distinct_id: "ada-7", properties: { $groups: { team: "blue" } } });
  await expect(async () => {
    await page.goto("/projects/1/groups/team");
    await expect(page.getByRole("heading", { name: "No group of this type yet" })).toBeVisible({ timeout: 1_000 });
  }).toPass();
  await expect(page.locator("pre")).toContainText('"$group_type": "team"');
  await expect(page.getByRole("link", { name: "Clear filters" })).toHaveCount(0);
  await alive(page, scripts);
  await checkPage(page, "groups that are only named");

  await page.goto("/projects/1/persons?q=ada7%40example");
  await page.getByRole("link", { name: "ada7@example.com" }).click();
  await page.getByRole("link", { name: "team: blue" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "blue" })).toBeVisible();
  await expect(page.getByText("No properties yet.")).toBeVisible();
  await expect(page.locator(".timeline")).toContainText("plan paid");
});

test("a person is exported and deleted with its events", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const key = await projectKey(page);
  const properties = { $set: { email: "gone7@example.com" } };
  await send(server, key, { event: "plan chosen", distinct_id: "gone-7", properties });
  await send(server, key, { event: "plan left", distinct_id: "gone-7" });
  const link = page.getByRole("link", { name: "gone7@example.com" });
  await expect(async () => {
    await page.goto("/projects/1/persons?q=gone7%40example");
    await link.click({ timeout: 1_000 });
    await expect(page.locator(".timeline")).toContainText("plan left", { timeout: 1_000 });
  }).toPass();
  const address = page.url();

  const href = await page.getByRole("link", { name: "Export person" }).getAttribute("href");
  const exported = await page.request.get(`${server.url}${href}`);
  expect(exported.headers()["content-disposition"]).toContain("attachment");
  const lines = (await exported.text()).trim().split("\n").map((line) => JSON.parse(line));
  expect(lines[0].person.distinct_ids).toEqual(["gone-7"]);
  expect(lines.slice(1).map((line) => line.event.event)).toEqual(["plan left", "plan chosen"]);

  await alive(page, scripts);
  await page.locator("summary", { hasText: "Delete person" }).click();
  await page.getByLabel("Delete its events too").check();
  await checkPage(page, "person that is to be deleted");
  await page.getByRole("button", { name: "Delete the person" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Deleted person" })).toBeVisible();
  await expect(page.getByRole("navigation", { name: "Breadcrumb" }).locator("[aria-current=page]")).toHaveText("Deleted person");
  expect(new URL(page.url()).pathname).toBe(new URL(address).pathname);
  await expect(page.getByText("This person and its events were deleted.")).toBeVisible();
  await alive(page, scripts);
  await checkPage(page, "deleted person");

  await page.goto("/projects/1/persons?q=gone7%40example");
  await expect(page.getByRole("link", { name: "Clear filters" })).toBeVisible();
  await expect(link).toHaveCount(0);
  expect((await page.request.get(`${server.url}${href}`)).status()).toBe(404);

  // A later event makes a new person.
  await send(server, key, { event: "plan paid", distinct_id: "gone-7" });
  await expect(async () => {
    await page.goto(address);
    await expect(page.locator(".timeline")).toContainText("plan paid", { timeout: 1_000 });
  }).toPass();
  await expect(page.locator(".timeline > li")).toHaveCount(1);
});

test("unknown persons and groups have no page", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const answer = await page.goto("/projects/1/persons/00000000-0000-0000-0000-000000000000");
  expect(answer?.status()).toBe(404);
  for (const group of ["company/nobody", "nothing/nobody"]) {
    expect((await page.goto(`/projects/1/groups/${group}`))?.status(), group).toBe(404);
  }
});
