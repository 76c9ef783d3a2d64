// Dashboards: saved insights side by side, and share links for people without an account.

import type { Locator, Page } from "@playwright/test";
import { alive, apiKey, call, checkPage, enter, expect, newOrganization, save, send, sent, type Server, test } from "./helpers";

/** A tile, by the name of its insight. */
const tile = (page: Page, name: string): Locator => page.getByRole("region", { name, exact: true });

/** The first number in the table of a tile. */
const number = (page: Page, name: string): Locator =>
  page.getByRole("table", { name: `Numbers of ${name}` }).locator("tbody > tr").first().getByRole("cell").first();

interface Made {
  key: string;
  project: number;
  /** The address of the project. */
  root: string;
}

/** A project in which two persons paid three times, with two saved insights. */
async function furnished(page: Page, server: Server, scripts: boolean): Promise<Made> {
  const key = await apiKey(page, server, scripts);
  const { project, token } = await newOrganization(server, key, "Tea Shop");
  for (const id of ["ada", "ada", "bob"]) await send(server, token, { event: "tea paid", distinct_id: id });
  const query = (math: string): object => ({ kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "tea paid", math }] });
  await expect(async () => {
    const body = { query: query("total"), refresh: "force_blocking" };
    const { results } = await call(server, key, "POST", `/api/projects/${project}/query/`, body);
    expect(results[0].count).toBe(3);
  }).toPass();
  for (const [name, math] of [["Payments", "total"], ["Payers", "dau"]] as const) {
    await call(server, key, "POST", `/api/projects/${project}/insights/`, { name, query: query(math) });
  }
  return { key, project, root: `/projects/${project}` };
}

/** Chooses an action of the menu of a tile. */
async function choose(page: Page, name: string, action: string): Promise<void> {
  await tile(page, name).locator("details.menu > summary").click();
  await sent(page, () => tile(page, name).getByRole("button", { name: action, exact: true }).click());
}

/** The names of the tiles in their order. */
const names = (page: Page): Locator => page.locator(".tiles h2");

test("an insight becomes a tile, and tiles are moved, removed and restored", async ({ page, server, scripts }) => {
  const { root } = await furnished(page, server, scripts);
  await page.goto(`${root}/dashboards`);
  await expect(page.getByRole("heading", { name: "No dashboard yet" })).toBeVisible();
  await alive(page, scripts);
  await checkPage(page, "no dashboard");
  await page.getByRole("link", { name: "Create a dashboard" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Growth");
  await page.getByLabel("Description").fill("What we read on Mondays");
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Create dashboard" }).click());
  await page.waitForURL(/\/dashboards\/\d+$/);
  await expect(page.getByText("Created Growth.")).toBeVisible();
  await expect(page.getByRole("heading", { name: "No tile yet" })).toBeVisible();
  await expect(page.getByRole("navigation", { name: "Breadcrumb" })).toContainText("Growth");
  const dashboard = page.url();

  // From the dashboard, and from the page of an insight.
  await page.getByLabel("Insight", { exact: true }).selectOption("Payments");
  await sent(page, () => page.getByRole("button", { name: "Add to dashboard" }).click());
  await expect(number(page, "Payments")).toHaveText("3");
  await tile(page, "Payments").getByRole("link", { name: "Payments" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Payments" })).toBeVisible();
  await page.goto(`${root}/insights`);
  await page.getByRole("link", { name: "Payers", exact: true }).click();
  await page.getByRole("link", { name: "Add to a dashboard" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Dashboards of an insight" })).toBeVisible();
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Add to Growth" }).click());
  await expect(page.getByRole("button", { name: "Remove from Growth" })).toBeVisible();
  await checkPage(page, "the dashboards of an insight");

  await page.goto(dashboard);
  await alive(page, scripts);
  await expect(names(page)).toHaveText(["Payments", "Payers"]);
  await expect(number(page, "Payers")).toHaveText("2");
  await checkPage(page, "a dashboard with two tiles");
  await choose(page, "Payers", "Move earlier");
  await expect(names(page)).toHaveText(["Payers", "Payments"]);
  // The moved tile can be moved on by the keyboard, or is in sight.
  if (scripts) await expect(tile(page, "Payers").locator("details.menu > summary")).toBeFocused();
  else await expect(page).toHaveURL(/#tile-2$/);
  // The first tile has no earlier place.
  await expect(tile(page, "Payers").getByRole("button", { name: "Move earlier", includeHidden: true })).toHaveCount(0);
  await choose(page, "Payers", "Make as wide as the page");
  await expect(page.locator(".tile-wide h2")).toHaveText(["Payers"]);
  await choose(page, "Payers", "Make half as wide");
  await expect(page.locator(".tile-wide")).toHaveCount(0);
  // Low, usual and high.
  const height = async (): Promise<number> => (await tile(page, "Payers").boundingBox())?.height ?? 0;
  const usual = await height();
  await choose(page, "Payers", "Make higher");
  await expect(page.locator(".tile-high h2")).toHaveText(["Payers"]);
  await expect.poll(height).toBeGreaterThan(usual);
  await choose(page, "Payers", "Make lower");
  await expect(page.locator(".tile-high")).toHaveCount(0);
  await choose(page, "Payers", "Make lower");
  await expect(page.locator(".tile-low h2")).toHaveText(["Payers"]);
  await checkPage(page, "a dashboard with a low tile");
  await choose(page, "Payers", "Make higher");
  await expect(page.locator(".tile-low")).toHaveCount(0);
  await choose(page, "Payers", "Remove from dashboard");
  await expect(names(page)).toHaveText(["Payments"]);
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Undo" }).click());
  await expect(names(page)).toHaveText(["Payments", "Payers"]);
});

test("a range is for all tiles, and a fault is shown in its tile", async ({ page, server, scripts }) => {
  const { key, project, root } = await furnished(page, server, scripts);
  const api = `/api/projects/${project}`;
  const ofPerson = { type: "person", key: "plan", operator: "exact", value: ["pro"] };
  const query = { kind: "TrendsQuery", series: [{ event: "tea paid" }], properties: [ofPerson] };
  await call(server, key, "POST", `${api}/insights/`, { name: "Refused", query });
  const { results } = await call(server, key, "GET", `${api}/insights/`);
  const { id } = await call(server, key, "POST", `${api}/dashboards/`, { name: "Growth" });
  const tiles = results.map((insight: { id: number }) => ({ insight: insight.id }));
  const filters = { date_from: "2020-01-01", date_to: "2020-01-31" };
  await call(server, key, "PATCH", `${api}/dashboards/${id}/`, { tiles, filters });

  await page.goto(`${root}/dashboards/${id}`);
  await alive(page, scripts);
  await expect(number(page, "Payments")).toHaveText("0");
  await expect(tile(page, "Refused").getByRole("alert")).toBeVisible();
  await checkPage(page, "a dashboard with a fault in a tile");
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route("**/_fn/answer_tile", async (route) => {
    await held;
    await route.continue();
  });
  await page.getByLabel("Range", { exact: true }).selectOption("Last 30 days");
  if (!scripts) await page.getByRole("button", { name: "Filter" }).click();
  await page.waitForURL(/range=-30d/);
  // The answer of the other range stays until that of this one is there.
  if (scripts) {
    await expect(tile(page, "Payments").getByText("Updating...")).toBeVisible();
    await expect(number(page, "Payments")).toHaveText("0");
  }
  release();
  await expect(number(page, "Payments")).toHaveText("3");
  await alive(page, scripts);

  await page.goto(`${root}/dashboards/${id}/settings`);
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("Sales");
  await page.getByLabel("Range", { exact: true }).selectOption("Last 7 days");
  await save(page, "Save settings");
  await checkPage(page, "settings of a dashboard");
  await page.goto(`${root}/dashboards/${id}`);
  await alive(page, scripts);
  await expect(page.getByRole("heading", { level: 1, name: "Sales" })).toBeVisible();
  await expect(number(page, "Payments")).toHaveText("3");

  await page.goto(`${root}/dashboards/${id}/settings`);
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Delete dashboard" }).click());
  await page.waitForURL(/\/dashboards$/);
  await expect(page.getByRole("heading", { name: "No dashboard yet" })).toBeVisible();
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Undo" }).click());
  await expect(page.getByRole("link", { name: "Sales", exact: true })).toBeVisible();
});

test("a share link shows a dashboard without a session until it is revoked", async ({ page, server, scripts, browser }) => {
  const { key, project, root } = await furnished(page, server, scripts);
  const api = `/api/projects/${project}`;
  const { results } = await call(server, key, "GET", `${api}/insights/`);
  const { id } = await call(server, key, "POST", `${api}/dashboards/`, { name: "Growth", description: "For the board" });
  await call(server, key, "PATCH", `${api}/dashboards/${id}/`, { tiles: [{ insight: results[0].id }] });

  const sharing = `${root}/dashboards/${id}/sharing`;
  await page.goto(sharing);
  await alive(page, scripts);
  await expect(page.getByText("No link works at present.")).toBeVisible();
  await page.getByLabel("Works for").selectOption("7 days");
  await sent(page, () => page.getByRole("button", { name: "Create share link" }).click());
  await page.waitForURL(/\/sharing\/link$/);
  const address = (await page.locator(".reveal-value code").textContent()) ?? "";
  expect(address).toContain("/shared/");
  await alive(page, scripts);
  await checkPage(page, "a new share link");
  await page.reload();
  await expect(page.getByText("There is no link to show")).toBeVisible();

  const visitor = await browser.newContext({ baseURL: server.url, javaScriptEnabled: scripts });
  const other = await visitor.newPage();
  const answer = await other.goto(address);
  expect(answer?.headers()["x-robots-tag"]).toContain("noindex");
  expect(answer?.headers()["referrer-policy"]).toBe("no-referrer");
  await alive(other, scripts);
  await expect(other.getByRole("heading", { level: 1, name: "Growth" })).toBeVisible();
  await expect(other.getByText("For the board")).toBeVisible();
  await expect(number(other, "Payments")).toHaveText("3");
  await expect(other.getByRole("navigation")).toHaveCount(0);
  await expect(other.getByText("Tea Shop")).toHaveCount(0);
  await expect(other.getByRole("main").getByRole("link")).toHaveCount(0);
  await checkPage(other, "a shared dashboard");

  await page.goto(sharing);
  await alive(page, scripts);
  const row = page.getByRole("table", { name: "Share links" }).locator("tbody > tr");
  await expect(row).toHaveCount(1);
  await row.locator("details.menu > summary").click();
  await row.getByRole("button", { name: "Revoke..." }).click();
  const question = page.getByRole("dialog", { name: "Revoke link 1?" });
  await checkPage(page, "the question before a share link is revoked");
  await sent(page, () => question.getByRole("button", { name: "Revoke link" }).click());
  await expect(page.getByText("No link works at present.")).toBeVisible();

  const refused = await other.goto(address);
  expect(refused?.status()).toBe(404);
  await expect(other.getByText("This link does not work")).toBeVisible();
  await alive(other, scripts);
  await checkPage(other, "a share link that does not work");
  await visitor.close();
});

test("pages of dashboards need a session", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.context().clearCookies();
  await page.goto("/projects/1/dashboards");
  await page.waitForURL(/\/login\?next=/);
});

test("tiles are reordered by dragging", async ({ page, server, scripts }) => {
  test.skip(!scripts, "dragging needs scripts");
  const { key, project, root } = await furnished(page, server, scripts);
  const api = `/api/projects/${project}`;
  const { results } = await call(server, key, "GET", `${api}/insights/`);
  const { id } = await call(server, key, "POST", `${api}/dashboards/`, { name: "Growth" });
  const tiles = results.map((insight: { id: number }) => ({ insight: insight.id }));
  await call(server, key, "PATCH", `${api}/dashboards/${id}/`, { tiles: tiles.slice(0, 1) });
  await page.goto(`${root}/dashboards/${id}`);
  await alive(page, scripts);
  await expect(names(page)).toHaveCount(1);
  // One tile has no other place.
  await expect(page.locator("[data-reorder-handle]")).toHaveCount(0);
  await call(server, key, "PATCH", `${api}/dashboards/${id}/`, { tiles: tiles.slice(1) });
  await page.reload();
  await alive(page, scripts);
  await expect(number(page, "Payers")).toHaveText("2");
  const [first, second] = await names(page).allTextContents();
  // Both tiles are in the window: a drag does not scroll the page.
  await page.setViewportSize({ width: 1280, height: 1400 });
  const handle = page.locator("[data-reorder-handle]");
  const stored = page.waitForResponse("**/_fn/order_tiles");
  await handle.nth(1).dragTo(page.locator(".tile").nth(0));
  expect((await stored).ok()).toBe(true);
  await expect(names(page)).toHaveText([second!, first!]);
  await page.reload();
  await expect(names(page)).toHaveText([second!, first!]);
});
