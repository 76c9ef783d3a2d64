// Transformations of a project: added, tried, switched, put in order, deleted, and
// what they make of an event.

import type { Page } from "@playwright/test";
import {
  addTransformations,
  alive,
  apiKey,
  call,
  checkPage,
  expect,
  newOrganization,
  type Organization,
  save,
  send,
  type Server,
  shell,
  shot,
  test,
  type Transformation,
} from "./helpers";

const CARDS: Transformation = { entry: "property-filter", name: "No cards", config: { properties: "card" } };
const BOTS: Transformation = { entry: "bot-filter", name: "Bot filter" };

/** A project with these transformations, in an organization of its own, with its list open. */
async function prepare(page: Page, server: Server, scripts: boolean, all: Transformation[]): Promise<Organization & { key: string }> {
  const key = await apiKey(page, server, scripts);
  const organization = await newOrganization(server, key);
  await addTransformations(server, key, organization, all);
  await page.goto(`/projects/${organization.project}/transformations`);
  await alive(page, scripts);
  return { ...organization, key };
}

/** Names of the transformations in their order. */
const names = (page: Page) => page.locator("ol.steps h2");

test("the first transformation changes events before they are stored", async ({ page, server, scripts }) => {
  const { project, token, key } = await prepare(page, server, scripts, []);
  await expect(page.getByRole("heading", { name: "No transformation yet" })).toBeVisible();
  await checkPage(page, "no transformation");
  await page.getByRole("link", { name: "Add transformation" }).first().click();
  await alive(page, scripts);
  await page.getByRole("link", { name: "Add a plugin" }).click();
  await alive(page, scripts);
  await page.getByRole("button", { name: "Add Property filter" }).click();
  await expect(page.getByRole("heading", { name: "Property filter", level: 1 })).toBeVisible();
  await alive(page, scripts);
  await page.getByRole("link", { name: /^Use in / }).click();
  await alive(page, scripts);
  await page.getByLabel("Properties", { exact: true }).fill("card");
  await page.getByRole("button", { name: "Add to project" }).click();
  await page.waitForURL("**/transformations/*");
  await expect(page.getByText("Added Property filter. It works from now on.")).toBeVisible();

  const stored = async () => (await call(server, key, "GET", `/api/projects/${project}/events/?event=paid`)).results;
  // A new one is known within a second.
  await expect(async () => {
    await send(server, token, { event: "paid", distinct_id: "ada", properties: { card: "4711", total: 3 } });
    const [event] = await stored();
    expect(event.properties.total).toBe(3);
    expect(event.properties.card).toBeUndefined();
  }).toPass();
});

test("a trial shows the event before and after", async ({ page, server, scripts }) => {
  const { project, token, key } = await prepare(page, server, scripts, [CARDS]);
  await send(server, token, { event: "paid", distinct_id: "ada", properties: { card: "4711", total: 3 } });
  await expect(async () => {
    expect((await call(server, key, "GET", `/api/projects/${project}/events/`)).results).toHaveLength(1);
  }).toPass();
  await page.getByRole("link", { name: "No cards" }).click();
  await alive(page, scripts);
  await page.getByLabel("Event", { exact: true }).fill('{"event": "paid", "properties": {"card": "4711", "total": 3}}');
  await page.getByRole("button", { name: "Try this event" }).click();
  await page.waitForURL("**sample=entered**");
  const result = page.getByRole("region", { name: "Result" });
  await expect(result.getByText("Changed")).toBeVisible();
  await expect(result.locator("td.diff-out").filter({ hasText: '"card"' })).toBeVisible();
  await checkPage(page, "a config with a try");
  await page.goto(`${new URL(page.url()).pathname}?sample=newest`);
  await expect(result).toBeVisible();
  await page.getByLabel("Event", { exact: true }).fill("{");
  await page.getByRole("button", { name: "Try this event" }).click();
  await expect(page.getByLabel("Event", { exact: true })).toHaveAccessibleDescription(/This is no JSON/);
});

test("settings are saved, and a fault is shown at its field", async ({ page, server, scripts }) => {
  await prepare(page, server, scripts, [{ ...CARDS, name: "Cards" }]);
  await page.getByRole("link", { name: "Cards" }).click();
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("No cards");
  // It removes values, so it drops the event on failure unless the settings say otherwise.
  const choice = page.getByLabel("On failure", { exact: true });
  await expect(choice).toHaveValue("hold_then_drop");
  await choice.selectOption("store_unchanged");
  await save(page, "Save settings");
  await expect(page.getByLabel("On failure", { exact: true })).toHaveValue("store_unchanged");
  await expect(page.getByRole("heading", { name: "No cards", level: 1 })).toBeVisible();
  await alive(page, scripts);
  await page.getByLabel("Properties", { exact: true }).fill("");
  await page.getByRole("button", { name: "Save settings" }).click();
  await expect(page.getByLabel("Properties", { exact: true })).toHaveAttribute("aria-invalid", "true");
});

test("switch off and undo", async ({ page, server, scripts }) => {
  await prepare(page, server, scripts, [CARDS]);
  await page.getByRole("button", { name: "Switch off No cards" }).click();
  await expect(page.getByText("Switched No cards off.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Switch on No cards" })).toBeVisible();
  await page.getByRole("button", { name: /^Undo/ }).first().click();
  await expect(page.getByRole("button", { name: "Switch off No cards" })).toBeVisible();
});

test("order by buttons", async ({ page, server, scripts }) => {
  const { key } = await prepare(page, server, scripts, [CARDS, BOTS]);
  await expect(names(page)).toHaveText(["No cards", "Bot filter"]);
  await shot(page, "transformations");
  await checkPage(page, "two transformations");
  await page.getByRole("button", { name: "Move up Bot filter" }).click();
  await expect(names(page)).toHaveText(["Bot filter", "No cards"]);
  await expect(page.getByRole("button", { name: "Move up Bot filter" })).toHaveCount(0);
  await alive(page, scripts);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(names(page)).toHaveText(["No cards", "Bot filter"]);
  await alive(page, scripts);
  await page.getByRole("button", { name: "Move up Bot filter" }).click();
  await expect(names(page)).toHaveText(["Bot filter", "No cards"]);
  // The request for it runs as printed.
  const request = page.locator("details.api-request", { hasText: "put in order" });
  const command = (await request.locator("pre code").textContent()) ?? "";
  const answer = JSON.parse(await shell(`export WEIR_API_KEY='${key}'; ${command} -sSf`));
  expect(answer.results).toHaveLength(2);
});

test("a conflicting order is shown with a choice", async ({ page, server, scripts }) => {
  const { project, key } = await prepare(page, server, scripts, [BOTS, CARDS]);
  await expect(names(page)).toHaveText(["Bot filter", "No cards"]);
  const path = `/api/projects/${project}/pipeline_transformation_configs/`;
  const listed = (await call(server, key, "GET", path)).results;
  expect(listed).toHaveLength(2);
  const orders = Object.fromEntries(listed.map((one: any, at: number) => [one.id, listed.length - at]));
  await call(server, key, "PATCH", `${path}rearrange/`, { orders });
  await page.getByRole("button", { name: "Move up No cards" }).click();
  await expect(page.getByText("Another user has changed the order.")).toBeVisible();
  await checkPage(page, "two orders");
  await page.getByRole("button", { name: "Use my order" }).click();
  await expect(names(page)).toHaveText(["No cards", "Bot filter"]);
});

test("delete, restore, delete permanently", async ({ page, server, scripts }) => {
  await prepare(page, server, scripts, [CARDS, BOTS]);
  await page.getByRole("button", { name: "Delete Bot filter" }).click();
  await expect(page.getByText("Deleted Bot filter.")).toBeVisible();
  await expect(names(page)).toHaveText(["No cards"]);
  const bin = page.locator("details.bin");
  await bin.locator("summary").first().click();
  await bin.getByRole("button", { name: "Restore Bot filter" }).click();
  await expect(names(page)).toHaveCount(2);
  await alive(page, scripts);
  await page.getByRole("button", { name: "Delete Bot filter" }).click();
  await expect(names(page)).toHaveCount(1);
  await alive(page, scripts);
  await bin.locator("summary").first().click();
  await bin.getByRole("link", { name: "Delete permanently Bot filter" }).click();
  await page.waitForURL(/#ending$/);
  await alive(page, scripts);
  const ending = page.getByRole("region", { name: "Delete" });
  await ending.getByLabel("Name of the transformation").fill("Bot filter");
  await ending.getByText("Show as API request: delete permanently").click();
  await expect(ending.locator("details[open] code").last()).toContainText("curl -X DELETE");
  await ending.getByRole("button", { name: "Delete permanently" }).click();
  await expect(page.getByText("Deleted Bot filter permanently.")).toBeVisible();
  await expect(bin).toHaveCount(0);
});
