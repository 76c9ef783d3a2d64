// The events page with and without scripts: filters, range, columns, panel, CSV.

import { type Page } from "@playwright/test";
import { alive, checkPage, enter, expect, look, projectKey, send, type Server, test } from "./helpers";

const row = (page: Page, name: string) => page.locator(".rows-list > tr", { hasText: name });

/** Sends two events and opens the page with both. */
async function openEvents(page: Page, server: Server, scripts: boolean): Promise<void> {
  await enter(page, server, scripts);
  const key = await projectKey(page);
  await send(server, key, { event: "cup bought", distinct_id: "ada", properties: { plan: "pro", size: 3 } });
  await send(server, key, { event: "pot bought", distinct_id: "bob", properties: { plan: "free" } });
  await page.goto("/projects/1/events");
  await alive(page, scripts);
  await expect(async () => {
    await look(page, scripts);
    await expect(row(page, "pot bought").first()).toBeVisible({ timeout: 2_000 });
  }).toPass();
}

test("the former address leads to the page", async ({ page, server, scripts }) => {
  await openEvents(page, server, scripts);
  await page.goto("/projects/1/live?q=cup&outcome=accepted");
  await expect(page).toHaveURL(/\/projects\/1\/events\?event=cup&outcome=accepted$/);
  await expect(page).toHaveTitle(/^Events - .+ - Weir$/);
  await expect(row(page, "cup bought").first()).toBeVisible();
  await expect(row(page, "pot bought")).toHaveCount(0);
});

test("filters and ranges are in the address", async ({ page, server, scripts }) => {
  await openEvents(page, server, scripts);
  await page.getByText("More filters").click();
  await page.getByLabel("Property", { exact: true }).fill("plan");
  await page.getByLabel("Value of the property").fill("free");
  await page.getByRole("search", { name: "Events" }).getByRole("button", { name: "Filter" }).click();
  await expect(page).toHaveURL(/property=plan&value=free/);
  await expect(row(page, "pot bought").first()).toBeVisible();
  await expect(row(page, "cup bought")).toHaveCount(0);
  // The chart counts what the list has.
  await expect(page.locator(".events-chart")).toContainText(/ events? accepted, 0 dropped, and 0 requests rejected\./);
  await expect(page.getByText("The filter applies to the list.")).toHaveCount(0);
  await page.getByRole("navigation", { name: "Range" }).getByRole("link", { name: "7 days" }).click();
  await expect(page).toHaveURL(/value=free.*range=7d/);
  await expect(row(page, "pot bought").first()).toBeVisible();
  await checkPage(page, "filtered events");

  await page.goto("/projects/1/events?to=2020-01-01T00:00");
  await expect(page.getByText("No event was received in this time range.")).toBeVisible();
  await page.getByRole("link", { name: "Show all time" }).click();
  await expect(page).toHaveURL(/range=all/);
  await expect(row(page, "pot bought").first()).toBeVisible();
  await page.goto("/projects/1/events?event=nothing+like+this");
  await expect(page.getByText("No event matches the filter.")).toBeVisible();
});

test("columns are chosen", async ({ page, server, scripts }) => {
  await openEvents(page, server, scripts);
  const heading = (name: string) => page.getByRole("columnheader", { name });
  await expect(heading("Library")).toBeVisible();
  await page.locator(".columns-menu > summary").click();
  await page.getByRole("checkbox", { name: "Library" }).uncheck();
  await page.getByRole("checkbox", { name: "Event time" }).check();
  await page.getByRole("button", { name: "Show columns" }).click();
  await expect(page).toHaveURL(/columns=time/);
  await expect(heading("Event time")).toBeVisible();
  await expect(heading("Library")).toHaveCount(0);
});

test("properties are columns", async ({ page, server, scripts }) => {
  await openEvents(page, server, scripts);
  await page.locator(".properties-menu > summary").click();
  await page.getByRole("checkbox", { name: "plan", exact: true }).check();
  await page.getByRole("button", { name: "Show properties" }).click();
  await expect(page).toHaveURL(/properties=plan/);
  await expect(page.getByRole("columnheader", { name: "plan", exact: true })).toBeVisible();
  await expect(row(page, "cup bought").first().getByRole("cell", { name: "pro", exact: true })).toBeVisible();
  await alive(page, scripts);
  await checkPage(page, "events with a property as column");
  // New rows have the value too, and other choices keep the column.
  await page.goto("/projects/1/start");
  await send(server, await projectKey(page), { event: "tin bought", distinct_id: "cyd", properties: { plan: "team" } });
  await page.goto("/projects/1/events?properties=plan");
  await alive(page, scripts);
  await expect(async () => {
    await look(page, scripts);
    await expect(row(page, "tin bought").first().getByRole("cell", { name: "team", exact: true })).toBeVisible({ timeout: 2_000 });
  }).toPass();
  await page.getByRole("navigation", { name: "Range" }).getByRole("link", { name: "7 days" }).click();
  await expect(page).toHaveURL(/properties=plan&range=7d$/);
});

test("the panel has properties, steps, raw payload and requests", async ({ page, server, scripts }) => {
  await openEvents(page, server, scripts);
  await row(page, "cup bought").first().locator(".row-link").click();
  await expect(page).toHaveURL(/selected=/);
  const panel = page.getByRole("region", { name: "cup bought" });
  await expect(panel.getByRole("term").filter({ hasText: /^plan$/ })).toBeVisible();
  await expect(panel.getByText("Stored as sent.")).toBeVisible();
  await panel.locator("summary", { hasText: "Raw" }).click();
  await expect(panel.getByRole("figure", { name: "Event as stored" })).toContainText('"size": 3');
  await panel.locator("summary", { hasText: /^API request$/ }).click();
  await expect(panel.getByRole("figure", { name: "Send it again with curl" })).toBeVisible();
  await checkPage(page, "event with its panel");
  await panel.getByRole("link", { name: "Close" }).click();
  await expect(panel).toHaveCount(0);
  await page.goto("/projects/1/events?selected=00000000-0000-0000-0000-000000000000");
  await expect(page.getByText("This event is not kept any more")).toBeVisible();
});

test("the filtered events are downloaded", async ({ page, server, scripts }) => {
  await openEvents(page, server, scripts);
  await page.goto("/projects/1/events?event=cup");
  const href = await page.getByRole("link", { name: "Download CSV" }).getAttribute("href");
  const answer = await page.request.get(href!);
  expect(answer.headers()["content-type"]).toBe("text/csv; charset=utf-8");
  const lines = (await answer.text()).trim().split("\r\n");
  expect(lines[0]).toContain('"received","event_time","outcome"');
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines.slice(1)) expect(line).toContain('"cup bought"');
});
