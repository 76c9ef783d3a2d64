// The numbers of a site: visitors, views and sessions, with filters in the address.

import type { Locator, Page } from "@playwright/test";
import { alive, apiKey, call, checkPage, enter, expect, newOrganization, send, type Server, test } from "./helpers";

/** A project whose site two persons visited. Returns the address of the numbers. */
async function visited(page: Page, server: Server, scripts: boolean): Promise<string> {
  const key = await apiKey(page, server, scripts);
  const { project, token } = await newOrganization(server, key, "Tea Shop");
  const views = [
    { id: "ada", path: "/", browser: "Chrome", referrer: "search.example" },
    { id: "ada", path: "/tea", browser: "Chrome", referrer: "search.example" },
    { id: "bob", path: "/", browser: "Firefox", referrer: "$direct" },
  ];
  for (const { id, path, browser, referrer } of views) {
    const properties = {
      $pathname: path,
      $session_id: id,
      $browser: browser,
      $device_type: "Desktop",
      $referring_domain: referrer,
      $geoip_country_code: "DE",
    };
    await send(server, token, { event: "$pageview", distinct_id: id, properties });
  }
  const query = { kind: "WebOverviewQuery" };
  await expect(async () => {
    const { results } = await call(server, key, "POST", `/api/projects/${project}/query/`, { query, refresh: "force_blocking" });
    expect(results[1].value).toBe(3);
  }).toPass();
  return `/projects/${project}/web`;
}

/** The card with a number. */
const card = (page: Page, name: string): Locator => page.locator(".overview-number").filter({ has: page.getByRole("heading", { name, exact: true }) }).locator(".overview-value");

/** The rows of a table. */
const rows = (page: Page, name: string): Locator => page.getByRole("table", { name, exact: true }).locator("tbody > tr");

test("before the first event the numbers of a site say what they need", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/projects/1/web");
  await expect(page.getByRole("heading", { name: "No event yet" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Send the first event" })).toHaveAttribute("href", "/projects/1/start");
  await alive(page, scripts);
  await checkPage(page, "no event for the numbers of a site");
});

test("a site has numbers, and each value is a filter", async ({ page, server, scripts }) => {
  const web = await visited(page, server, scripts);
  await page.goto(web);
  await alive(page, scripts);
  await expect(card(page, "Visitors")).toHaveText("2");
  await expect(card(page, "Views")).toHaveText("3");
  await expect(card(page, "Sessions")).toHaveText("2");
  await expect(card(page, "Bounce rate")).toHaveText("50%");
  await expect(card(page, "Live visitors")).toHaveText("2");
  await expect(rows(page, "Page")).toHaveCount(2);
  await expect(rows(page, "Page").first().getByRole("cell").first()).toHaveText("2");
  await expect(rows(page, "Referrer").filter({ hasText: "Direct" })).toHaveCount(1);
  await expect(rows(page, "Country").getByRole("link", { name: "DE" })).toBeVisible();
  await page.getByText("Show the numbers").click();
  await expect(page.getByRole("figure").getByRole("table").locator("tbody > tr").last().getByRole("cell")).toHaveText("2");
  await checkPage(page, "numbers of a site");
  // Each tab is in sight.
  const sources = page.getByRole("navigation", { name: "Tables of Sources" });
  expect(await sources.evaluate((tabs) => tabs.scrollWidth - tabs.clientWidth)).toBe(0);

  // Another table of the card, and then a filter.
  await page.getByRole("navigation", { name: "Tables of Pages" }).getByRole("link", { name: "Exit" }).click();
  await page.waitForURL(/[?&]pages=exit/);
  await alive(page, scripts);
  await rows(page, "Exit page").getByRole("link", { name: "/tea" }).click();
  await page.waitForURL(/[?&]exit=\/tea/);
  await alive(page, scripts);
  await expect(card(page, "Visitors")).toHaveText("1");
  await expect(card(page, "Views")).toHaveText("2");
  await page.getByRole("navigation", { name: "Tables of Devices" }).getByRole("link", { name: "Browsers" }).click();
  await page.waitForURL(/[?&]devices=browser/);
  await alive(page, scripts);
  await expect(rows(page, "Browser")).toHaveCount(1);
  await rows(page, "Browser").getByRole("link", { name: "Chrome" }).click();
  await page.waitForURL(/[?&]browser=Chrome/);
  await alive(page, scripts);
  const filters = page.getByRole("list", { name: "Filters" }).getByRole("link");
  await expect(filters).toHaveCount(2);
  await checkPage(page, "numbers of a site with filters");

  await page.getByRole("link", { name: "Remove the filter Exit page: /tea" }).click();
  await expect(filters).toHaveCount(1);
  await alive(page, scripts);
  await page.goto(`${web}?browser=Lynx`);
  await alive(page, scripts);
  await expect(page.getByText("Browser: Lynx").last()).toBeVisible();
  await page.getByRole("link", { name: "Clear filters" }).click();
  await expect(card(page, "Visitors")).toHaveText("2");
});

test("the numbers of a site have a range", async ({ page, server, scripts }) => {
  await page.goto(await visited(page, server, scripts));
  await alive(page, scripts);
  const ranges = page.getByRole("navigation", { name: "Range" });
  await expect(ranges.getByRole("link", { name: "7 days" })).toHaveAttribute("aria-current", "true");
  await ranges.getByRole("link", { name: "Today" }).click();
  await page.waitForURL(/[?&]range=dStart/);
  await alive(page, scripts);
  await expect(page.getByRole("heading", { name: "Visitors per hour" })).toBeVisible();
  await expect(card(page, "Visitors")).toHaveText("2");
});
