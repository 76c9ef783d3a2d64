// What scripts add to the events page: rows as they arrive, pause, the panel without a load.

import { type Page } from "@playwright/test";
import { alive, enter, expect, projectKey, refused, send, type Server, shell, shot, test } from "./helpers";

async function openLive(page: Page, server: Server): Promise<string> {
  await enter(page, server, true);
  const key = await projectKey(page);
  await page.goto("/projects/1/events");
  await alive(page, true);
  await expect(page.locator(".status-live")).toBeVisible();
  return key;
}

const row = (page: Page, name: string) => page.locator(".rows-list > tr", { hasText: name });
const link = (page: Page, name: string) => row(page, name).locator(".row-link");

test("an event becomes visible without a reload", async ({ page, server }) => {
  const key = await openLive(page, server);
  const before = Date.now();
  await send(server, key, { event: "quick one", distinct_id: "ada" });
  await expect(row(page, "quick one")).toBeVisible();
  test.info().annotations.push({ type: "ms until visible", description: String(Date.now() - before) });
  await send(server, key, { event: "no one" });
  await expect(row(page, "no one")).toContainText("No distinct_id.");
  await shot(page, "live");
});

test("a rejected request is a row of the list", async ({ page, server }) => {
  const key = await openLive(page, server);
  const rejected = row(page, "Rejected");
  await send(server, key, { event: "taken", distinct_id: "ada" });
  await expect(row(page, "taken")).toBeVisible();
  const before = await rejected.count();
  await refused(server, key);
  await expect(rejected).toHaveCount(before + 1, { timeout: 1_000 });
  await expect(rejected.first()).toContainText("The body could not be read.");
  await rejected.first().locator(".row-link").click();
  const detail = page.getByRole("region", { name: "Rejected request" });
  await expect(detail).toContainText("Send JSON, and name its compression in Content-Encoding.");
  await expect(detail).toContainText("/batch/");
  await expect(detail).toContainText(`${key.slice(0, 8)}...`);
  await expect(detail).not.toContainText(key);
  await expect(detail.locator("pre")).toHaveCount(0);
  await page.keyboard.press("Escape");

  await page.getByRole("combobox", { name: "Outcome" }).selectOption("rejected");
  await expect(page).toHaveURL(/outcome=rejected/);
  await expect(row(page, "taken")).toHaveCount(0);
  await expect(rejected).toHaveCount(before + 1);
  await page.reload();
  await expect(rejected).toHaveCount(before + 1);
  await expect(row(page, "taken")).toHaveCount(0);
});

test("the start page ticks its steps", async ({ page, server }) => {
  await enter(page, server, true);
  await alive(page, true);
  const key = await projectKey(page);
  await send(server, key, { event: "ticked", distinct_id: "ada" });
  await expect(page.getByRole("link", { name: "ticked" })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Send an event (done)" })).toBeVisible();
  await page.locator(".arrival").getByRole("link", { name: "ada", exact: true }).first().click();
  await expect(page).toHaveURL(/\/persons\//);
  await expect(page.getByRole("heading", { level: 1, name: "ada" })).toBeVisible();
});

test("space pauses, and no row is lost during the pause", async ({ page, server }) => {
  const key = await openLive(page, server);
  await page.keyboard.press("Space");
  await expect(page.getByRole("button", { name: "Resume" })).toBeVisible();
  await send(server, key, { event: "while paused", distinct_id: "ada" });
  await expect(page.getByRole("button", { name: "Resume (1 new)" })).toBeVisible();
  await expect(row(page, "while paused")).toHaveCount(0);
  await page.keyboard.press("Space");
  await expect(row(page, "while paused")).toHaveCount(1);
});

test("the filter covers stored rows and new ones, and is in the address", async ({ page, server }) => {
  const key = await openLive(page, server);
  await send(server, key, { event: "plan chosen", distinct_id: "ada", properties: { plan: "gold" } });
  await send(server, key, { event: "plan chosen again", distinct_id: "bob", properties: { plan: "free" } });
  await send(server, key, { event: "plan of no one" });
  await expect(row(page, "plan chosen again")).toBeVisible();
  await expect(row(page, "plan of no one")).toBeVisible();

  await page.keyboard.press("/");
  await expect(page.getByLabel("Event name")).toBeFocused();
  await page.getByText("More filters").click();
  await page.getByLabel("Property", { exact: true }).fill("plan");
  await page.getByLabel("Value of the property").fill("gold");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/property=plan&value=gold/);
  await expect(row(page, "plan chosen")).toHaveCount(1);
  await expect(page.locator(".status-live")).toBeVisible();
  await send(server, key, { event: "not this plan", distinct_id: "bob", properties: { plan: "free" } });
  await send(server, key, { event: "plan chosen later", distinct_id: "bob", properties: { plan: "gold" } });
  await expect(row(page, "plan chosen later")).toBeVisible();
  await expect(row(page, "not this plan")).toHaveCount(0);

  await page.reload();
  await expect(row(page, "plan chosen")).toHaveCount(2);
  await expect(page.getByLabel("Value of the property")).toHaveValue("gold");

  await alive(page, true);
  await page.getByLabel("Event name").fill("no such thing");
  await page.keyboard.press("Enter");
  await expect(page.getByText("No event matches the filter.")).toBeVisible();
  await page.getByRole("main").locator(".empty").getByRole("link", { name: "Clear filters" }).click();
  await expect(row(page, "plan chosen again")).toBeVisible();

  await page.getByRole("combobox", { name: "Outcome" }).selectOption("dropped");
  await expect(row(page, "plan chosen")).toHaveCount(0);
  await expect(row(page, "plan of no one")).toBeVisible();
});

test("a row opens its detail, which takes the focus", async ({ page, server }) => {
  const key = await openLive(page, server);
  await send(server, key, { event: "opened", distinct_id: "ada" });
  await link(page, "opened").click();
  const detail = page.getByRole("region", { name: "opened" });
  await expect(detail).toBeVisible();
  await expect(page).toHaveURL(/selected=/);
  await expect(detail.getByRole("heading", { name: "opened" })).toBeFocused();
  await detail.getByRole("link", { name: "Close" }).click();
  await expect(detail).toBeHidden();
  await expect(link(page, "opened")).toBeFocused();

  await page.keyboard.press("Enter");
  await expect(detail.getByRole("heading", { name: "opened" })).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(link(page, "opened")).toBeFocused();

  await page.goBack();
  await expect(detail).toBeVisible();
  await page.goForward();
  await expect(detail).toBeHidden();
});

test("the detail links to the person and to similar events, and prints a command", async ({ page, server }) => {
  const key = await openLive(page, server);
  await send(server, key, { event: "it's detailed", distinct_id: "ada", properties: { $set: { plan: "pro" } } });
  await link(page, "it's detailed").click();
  const detail = page.getByRole("region", { name: "it's detailed" });
  await expect(detail.getByText("Sets on the person: plan.")).toBeVisible();
  const command = detail.locator("pre", { hasText: "curl -sS" });
  await shell((await command.textContent()) ?? "");
  await expect(row(page, "it's detailed")).toHaveCount(2);
  await detail.getByRole("link", { name: "Find similar" }).click();
  await expect(page.getByLabel("Event name")).toHaveValue("it's detailed");
  await expect(row(page, "it's detailed")).toHaveCount(2);
  await link(page, "it's detailed").first().click();
  await detail.getByRole("definition").getByRole("link").click();
  await expect(page).toHaveURL(/\/persons\//);
});

test("a lost stream is shown and retried, and the gap is filled", async ({ page, server }) => {
  const key = await openLive(page, server);
  await page.route("**/_live/**", (route) => route.abort());
  await page.reload();
  await expect(page.getByText("The connection is lost.")).toBeVisible({ timeout: 15_000 });
  await expect(page.getByText(/Next try in \d+ s|Trying now/)).toBeVisible();
  await send(server, key, { event: "in the gap", distinct_id: "ada" });
  // It stays while attempts fail.
  await expect(page.getByText(/Next try in [34] s/)).toBeVisible({ timeout: 40_000 });
  await page.unroute("**/_live/**");
  await page.getByRole("button", { name: "Try now" }).click();
  await expect(row(page, "in the gap")).toHaveCount(1);
  await expect(page.getByText("The connection is lost.")).toBeHidden();
  await expect(page.locator(".status-live")).toBeVisible();
});

test("the page does not claim that a stopped server accepts events", async ({ page, server }) => {
  await openLive(page, server);
  // The stream alone is gone: the server is asked, and answers.
  await page.route("**/_live/**", (route) => route.abort());
  await page.reload();
  const lost = page.getByRole("alert").filter({ hasText: "The connection is lost." });
  await expect(lost).toContainText("The server answers");
  await page.route("**/_fn/list_events", (route) => route.abort());
  await page.getByRole("button", { name: "Try now" }).click();
  await expect(lost).toContainText("The server does not answer, so it is unknown whether events arrive.");
  // The button does not wait for the time of the next attempt.
  await expect(page.getByText(/Next try in [4-9] s/)).toBeVisible({ timeout: 40_000 });
  const attempt = page.waitForRequest("**/_live/**", { timeout: 3_000 });
  await page.getByRole("button", { name: "Try now" }).click();
  await attempt;
  await page.unroute("**/_fn/list_events");
  await page.unroute("**/_live/**");
  await expect(lost).toBeHidden();
});

test.describe("in another zone", () => {
  test.use({ timezoneId: "Asia/Kolkata" });

  test("u switches between UTC and the own zone", async ({ page, server }) => {
    const key = await openLive(page, server);
    await send(server, key, { event: "timed", distinct_id: "ada", timestamp: "2026-08-21T14:05:09Z" });
    await link(page, "timed").click();
    const time = page.getByRole("region", { name: "timed" }).locator("time[datetime^='2026-08-21']");
    await expect(page.getByText("Times in local time.")).toBeVisible();
    await expect(time).toHaveText("2026-08-21 19:35");
    await page.keyboard.press("u");
    await expect(page.getByText("Times in UTC.")).toBeVisible();
    await expect(time).toHaveText("2026-08-21 14:05 UTC");
  });
});

test("only the near rows of a long list are drawn", async ({ page, server }) => {
  const key = await openLive(page, server);
  for (let at = 0; at < 300; at++) {
    await send(server, key, { event: `many ${at}.`, distinct_id: "ada" });
  }
  await expect(row(page, "many 299.")).toBeVisible();
  const rows = page.locator(".rows-list > tr");
  await expect(rows).toHaveCount(50);
  const more = page.getByRole("button", { name: "Show more rows" });
  await expect(more).toBeVisible();

  // By keyboard, without the scrolling that would do it too.
  await more.evaluate((button) => button.focus({ preventScroll: true }));
  await page.keyboard.press("Enter");
  await expect(link(page, "many 249.")).toBeFocused();
  await expect.poll(() => rows.count()).toBeGreaterThanOrEqual(100);

  // Scrolling down draws more rows automatically.
  await expect(async () => {
    await page.mouse.wheel(0, 500);
    await expect(row(page, "many 150.")).toBeInViewport({ timeout: 100 });
  }).toPass();
  await expect(more).toBeVisible();
  // What is read there stays when something new arrives.
  const read = row(page, "many 150.");
  const place = (await read.boundingBox())!.y;
  const drawn = await rows.count();
  await send(server, key, { event: "far above", distinct_id: "ada" });
  await expect(rows).toHaveCount(drawn + 1);
  expect(Math.abs((await read.boundingBox())!.y - place)).toBeLessThan(2);

  await page.getByLabel("Event name").fill("many 1");
  await page.keyboard.press("Enter");
  await expect(row(page, "many 199.")).toBeVisible();
  await expect(rows).toHaveCount(50);
  await expect(more).toBeVisible();
  await page.getByRole("link", { name: "Older events" }).click();
  await expect(row(page, "many 1.")).toBeVisible();
  await expect(rows).toHaveCount(11);
  await page.getByRole("link", { name: "Latest events" }).click();
  await expect(row(page, "many 199.")).toBeVisible();
});

/** How many rows of this name the store has among the latest that the list can hold. */
const stored = (page: Page, name: string): Promise<number> =>
  page.evaluate(async (name) => {
    const body = new URLSearchParams({ project: "1", limit: "1000" });
    const { rows } = await (await fetch("/_fn/list_events", { method: "POST", body })).json();
    return rows.filter((row: { event: string }) => row.event?.startsWith(name)).length;
  }, name);

test("a long gap is filled up to the length of the list, and the rest is reported", async ({ page, server }) => {
  const key = await openLive(page, server);
  const more = page.getByText("Rows in between are missing here.");
  for (const [name, count] of [
    ["gap", 300],
    ["flood", 1_001],
  ] as const) {
    await page.route("**/_live/**", (route) => route.abort());
    await page.reload();
    await expect(page.getByText("The connection is lost.")).toBeVisible({ timeout: 15_000 });
    const batch = Array.from({ length: count }, (_, at) => ({ event: `${name} ${at}.`, distinct_id: "ada" }));
    const answer = await fetch(`${server.url}/batch/`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ api_key: key, batch }),
    });
    expect(answer.status).toBe(200);
    await expect.poll(() => stored(page, name), { timeout: 40_000 }).toBe(Math.min(count, 1_000));
    await page.unroute("**/_live/**");
    // An automatic attempt may happen at the same time.
    const again = page.getByRole("button", { name: "Try now" });
    await expect(async () => {
      if (await again.isVisible()) await again.click({ timeout: 1_000 });
      await expect(page.locator(".status-live")).toBeVisible({ timeout: 1_000 });
    }).toPass();
    await expect(more).toHaveCount(count > 1_000 ? 1 : 0);
    const next = page.getByRole("button", { name: "Show more rows" });
    await expect(async () => {
      if (await next.isVisible()) await next.click({ timeout: 1_000 });
      await expect(row(page, `${name} 50.`)).toHaveCount(1, { timeout: 200 });
    }).toPass();
  }
});
