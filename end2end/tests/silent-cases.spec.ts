// Events that are answered with 200 although they are not stored, or not as they
// came: the events page shows each one with its reason, Health counts the reasons.

import { type Locator, type Page } from "@playwright/test";
import { alive, enter, expect, look, post, projectKey, refused, test } from "./helpers";

const noName = "The event has no name.";
const noOne = "No distinct_id.";
const cut = "The event name was longer than 200 characters and was cut.";

const cases = [
  { what: "without a name", event: { distinct_id: "silent-nameless" }, row: "silent-nameless", code: "missing_event_name", word: "Dropped", reason: noName, fix: "Send a non-empty text as event.", sample: '"silent-nameless"' },
  { what: "without a distinct id", event: { event: "silent of no one" }, row: "silent of no one", code: "missing_distinct_id", word: "Dropped", reason: noOne, fix: "Send a distinct_id that is not blank", sample: '"silent of no one"' },
  { what: "with a blank distinct id", event: { event: "silent of a blank", distinct_id: "   " }, row: "silent of a blank", code: "missing_distinct_id", word: "Dropped", reason: noOne, fix: "Send a distinct_id that is not blank", sample: '"distinct_id": "   "' },
  { what: "that is altered", event: { event: "silent and long ".repeat(20), distinct_id: "silent-long", properties: { kind: "altered" } }, row: "silent-long", code: "event_name_cut", word: "Altered", reason: cut, fix: "Use short fixed names", sample: '"kind": "altered"' },
];

const entry = (page: Page, code: string): Locator => page.locator(`#${code}`);

/** How often the reason was given, as the page says. */
async function count(page: Page, code: string): Promise<number> {
  const found = entry(page, code);
  if ((await found.count()) === 0) return 0;
  const text = await found.getByRole("definition").first().textContent();
  return Number((text ?? "").replaceAll(",", ""));
}

for (const { what, event, row, code, word, reason, fix, sample } of cases) {
  test(`an event ${what} is seen on both pages`, async ({ page, server, scripts }) => {
    await enter(page, server, scripts);
    const key = await projectKey(page);
    await page.goto("/projects/1/health");
    const before = await count(page, code);

    expect((await post(server, key, event)).status).toBe(200);

    await page.goto("/projects/1/events");
    await alive(page, scripts);
    const arrived = page.locator(".rows-list > tr", { hasText: row });
    await expect(async () => {
      await look(page, scripts);
      await expect(arrived).toHaveCount(1, { timeout: 2_000 });
    }).toPass();
    await expect(arrived).toContainText(word);
    await expect(arrived).toContainText(reason);

    await page.getByRole("main").getByRole("link", { name: "Drop reasons" }).click();
    await expect(page).toHaveURL(/\/projects\/1\/health#reasons$/);
    await expect(page).toHaveTitle(/^Health - .+ - Weir$/);
    // The reasons are counted apart from the events, a moment later.
    await expect(async () => {
      await page.reload();
      await alive(page, scripts);
      expect(await count(page, code)).toBe(before + 1);
    }).toPass();
    const found = entry(page, code);
    await expect(found.getByRole("heading", { name: reason })).toBeVisible();
    await expect(found).toContainText(word);
    await expect(found).toContainText(fix);
    await expect(found.getByText("Last seen")).toBeVisible();
    await expect(found.locator("pre")).toBeHidden();
    await found.getByText("Latest sample").click();
    await expect(found.locator("pre")).toBeVisible();
    await expect(found.locator("pre")).toContainText(sample);
  });
}

test("a rejected request is seen on both pages", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await refused(server, await projectKey(page));
  await page.goto("/projects/1/events?outcome=rejected");
  await alive(page, scripts);
  const rows = page.locator(".rows-list > tr");
  await expect(rows.first()).toContainText("Rejected");
  await expect(rows.first()).toContainText("The body could not be read.");
  await expect(rows.filter({ hasNotText: "Rejected" })).toHaveCount(0);
  await rows.first().locator(".row-link").click();
  const detail = page.getByRole("region", { name: "Rejected request" });
  await expect(detail).toContainText("Send JSON, and name its compression in Content-Encoding.");
  await expect(detail).toContainText("/batch/");

  await page.goto("/projects/1/health");
  const counted = page.getByRole("table", { name: "Rejected requests by reason" });
  await expect(counted).toContainText("The body could not be read.");
});

test("dropped events are listed before altered ones, and the navigation links to them", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const key = await projectKey(page);
  for (const { event } of cases) expect((await post(server, key, event)).status).toBe(200);
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Health" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Health" })).toBeVisible();
  const badges = page.locator(".cause-head > .badge");
  await expect(async () => {
    await page.reload();
    await expect(badges.nth(2)).toBeVisible({ timeout: 1_000 });
  }).toPass();
  const words = await badges.allTextContents();
  expect(words).toEqual([...words].sort().reverse());
  await expect(page.locator(".nav-link[aria-current=page]")).toHaveText("Health");
});

test("a project of another organization has no such page", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const answer = await page.goto("/projects/999/health");
  expect(answer?.status()).toBe(404);
});
