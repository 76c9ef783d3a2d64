// Event definitions: the names of events, their counts, and the properties of the newest events.

import type { Page } from "@playwright/test";
import { alive, checkPage, enter, expect, projectKey, send, type Server, test } from "./helpers";

const rows = (page: Page) => page.getByRole("table", { name: "Event definitions" }).locator("tbody > tr");

/** Opens the list, once it has the names. */
async function openList(page: Page, server: Server, scripts: boolean): Promise<void> {
  await enter(page, server, scripts);
  const key = await projectKey(page);
  await send(server, key, { event: "tea brewed", distinct_id: "ada", properties: { leaves: 3, kind: "oolong" } });
  await send(server, key, { event: "tea brewed", distinct_id: "bob", properties: { leaves: "three" } });
  await send(server, key, { event: "tea / poured", distinct_id: "ada" });
  await expect(async () => {
    await page.goto("/projects/1/definitions?q=tea");
    await expect(rows(page)).toHaveCount(2, { timeout: 1_000 });
    await expect(rows(page).filter({ hasText: "tea brewed" })).toBeVisible({ timeout: 1_000 });
  }).toPass();
  await alive(page, scripts);
}

test("before the first event the page leads to the start", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/projects/1/definitions");
  await expect(page.getByRole("heading", { name: "No event yet" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Send the first event" })).toHaveAttribute("href", "/projects/1/start");
  await alive(page, scripts);
  await checkPage(page, "no event definition");
});

test("names are sorted and searched, in the address", async ({ page, server, scripts }) => {
  await openList(page, server, scripts);
  await expect(rows(page).first()).toContainText("tea / poured");
  await checkPage(page, "event definitions");

  const heading = page.getByRole("columnheader", { name: "Events in 30 days" });
  await heading.getByRole("link").click();
  await page.waitForURL(/order=-events/);
  await expect(heading).toHaveAttribute("aria-sort", "descending");
  await expect(rows(page).first()).toContainText("tea brewed");
  await alive(page, scripts);

  const search = page.getByRole("searchbox", { name: "Event name" });
  await search.fill("POURED");
  await search.press("Enter");
  await page.waitForURL(/q=POURED/);
  await expect(rows(page)).toHaveCount(1);
  await expect(page).toHaveURL(/order=-events/);
  await page.goto("/projects/1/definitions?q=nothing+like+this");
  await page.getByRole("link", { name: "Clear filters" }).click();
  await expect(rows(page).filter({ hasText: "tea brewed" })).toBeVisible();

  await page.goto("/projects/1/definitions?q=tea&limit=1");
  await expect(page.getByText("1 to 1 of 2 event definitions")).toBeVisible();
  await page.getByRole("link", { name: "Next" }).click();
  await page.waitForURL(/offset=1/);
  await expect(rows(page)).toHaveCount(1);
  await expect(rows(page)).toContainText("tea brewed");
});

test("a name leads to its properties and its events", async ({ page, server, scripts }) => {
  await openList(page, server, scripts);
  await page.getByRole("link", { name: "tea brewed", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "tea brewed" })).toBeVisible();
  const properties = page.getByRole("table", { name: "Properties of the event" });
  await expect(properties.getByRole("row").filter({ hasText: "leaves" })).toContainText("Number");
  await expect(properties.getByRole("row").filter({ hasText: "kind" })).toContainText('"oolong"');
  await alive(page, scripts);
  await checkPage(page, "event definition");
  await page.getByRole("link", { name: "Show events" }).click();
  await page.waitForURL(/\/events\?event=tea(%20|\+)brewed&range=all$/);
  await expect(page.locator(".rows-list > tr", { hasText: "tea brewed" }).first()).toBeVisible();

  // Also one whose name has a slash, and from the menu of its row.
  await page.goto("/projects/1/definitions?q=poured");
  await alive(page, scripts);
  await page.locator("summary", { hasText: "Actions for tea / poured" }).click();
  await page.getByRole("link", { name: "Watch live" }).click();
  await page.waitForURL(/\/events\?event=tea(%20|\+)(\/|%2F)(%20|\+)poured$/);
  await page.goto("/projects/1/definitions?q=poured");
  await page.getByRole("link", { name: "tea / poured", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "tea / poured" })).toBeVisible();
});

test("an unknown name has no page", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  expect((await page.goto("/projects/1/definitions/never%20sent"))?.status()).toBe(404);
});
