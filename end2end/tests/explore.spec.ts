// Exploring events, and questions in SQL: from a filter to SQL, to files, and to a saved insight.

import type { Locator, Page } from "@playwright/test";
import { alive, apiKey, call, checkPage, enter, expect, newOrganization, send, sent, type Server, shot, test } from "./helpers";

/** A project in which two persons paid three times. Returns its address. */
async function furnished(page: Page, server: Server, scripts: boolean): Promise<string> {
  const key = await apiKey(page, server, scripts);
  const { project, token } = await newOrganization(server, key, "Tea Shop");
  await send(server, token, { event: "tea seen", distinct_id: "ada" });
  await send(server, token, { event: "tea paid", distinct_id: "ada", properties: { price: 2.5, plan: "pro", $groups: { company: "acme" } } });
  await send(server, token, { event: "tea paid", distinct_id: "ada", properties: { price: 4, plan: "pro" } });
  await send(server, token, { event: "tea paid", distinct_id: "bob", properties: { price: 1 } });
  const query = { kind: "HogQLQuery", query: "SELECT count() FROM events WHERE event = 'tea paid'" };
  await expect(async () => {
    const { results } = await call(server, key, "POST", `/api/projects/${project}/query/`, { query });
    expect(results).toEqual([[3]]);
  }).toPass();
  return `/projects/${project}`;
}

const rows = (page: Page, caption: string): Locator => page.getByRole("table", { name: caption, exact: true }).locator("tbody > tr");

/** Sends the form of the page. */
async function press(page: Page, scripts: boolean, button: string, field: string): Promise<void> {
  await page.getByRole("button", { name: button }).click();
  await page.waitForURL(new RegExp(`[?&]${field}=`));
  await alive(page, scripts);
}

test("before the first event the explorer leads to the start", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/projects/1/events/explore");
  await expect(page.getByRole("heading", { name: "No event yet" })).toBeVisible();
  await alive(page, scripts);
  await checkPage(page, "no event to explore");
});

test("events are found by several filters, and the question opens in SQL", async ({ page, server, scripts }) => {
  const project = await furnished(page, server, scripts);
  await page.goto(`${project}/events`);
  await alive(page, scripts);
  await page.getByRole("link", { name: "Explore events" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Explore events" })).toBeVisible();
  await alive(page, scripts);

  await page.getByLabel("Event", { exact: true }).fill("tea paid");
  await page.getByLabel("Property", { exact: true }).fill("price");
  await page.getByLabel("Comparison", { exact: true }).selectOption("is at least");
  await page.getByLabel("Value", { exact: true }).fill("2");
  await page.getByLabel("Columns").fill("price, plan");
  await press(page, scripts, "Find events", "property1");
  await expect(page.getByText("2 events match.")).toBeVisible();
  await expect(rows(page, "Events")).toHaveCount(2);
  await expect(rows(page, "Events").filter({ hasText: "2.5" })).toContainText("company: acme");
  await checkPage(page, "explored events");
  await shot(page, "explore");

  // One more filter is there now.
  await page.getByLabel("Property 2").fill("price");
  await page.getByLabel("Comparison 2").selectOption("is between");
  await page.getByLabel("Value 2").fill("3, 5");
  await press(page, scripts, "Find events", "property2");
  await expect(page.getByText("1 event matches.")).toBeVisible();
  await page.getByLabel("Value 2").fill("many");
  await page.getByRole("button", { name: "Find events" }).click();
  await expect(page.getByText("Expected two numbers.")).toBeVisible();
  await alive(page, scripts);
  await checkPage(page, "a refused filter of events");

  await page.goto(`${project}/events/explore?event=tea+paid&columns=price&order=price`);
  await alive(page, scripts);
  const prices = rows(page, "Events").locator("td:last-child");
  await expect(prices).toHaveText(["1", "2.5", "4"]);
  await page.getByRole("columnheader", { name: "price" }).getByRole("link").click();
  await expect(prices).toHaveText(["4", "2.5", "1"]);
  await alive(page, scripts);

  // From a row to its person, its group and the event itself.
  await expect(rows(page, "Events").first().getByRole("link", { name: "ada" })).toHaveAttribute("href", new RegExp(`^${project}/persons/`));
  await expect(page.getByRole("link", { name: "company: acme" })).toHaveAttribute("href", `${project}/groups/company/acme`);
  await expect(rows(page, "Events").first().getByRole("link").first()).toHaveAttribute("href", new RegExp(`^${project}/events\\?selected=`));

  const csv = await page.request.get((await page.getByRole("link", { name: "Download CSV" }).getAttribute("href"))!);
  expect((await csv.text()).split("\r\n")[0]).toBe('"uuid","timestamp","event","distinct_id","person_id","groups","price"');
  const file = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download Parquet" }).click();
  expect((await file).suggestedFilename()).toMatch(/^events-.*\.parquet$/);

  await page.goto(`${project}/events/explore?event=tea+paid&property1=plan&value1=pro`);
  await alive(page, scripts);
  await page.getByText("Show as SQL").click();
  await page.getByRole("link", { name: "Open in SQL" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "SQL" })).toBeVisible();
  await expect(page.getByLabel("Query")).toHaveValue(/\{filters\}/);
  await expect(rows(page, "Answer")).toHaveCount(2);
});

test("a question in SQL is asked, corrected, saved and opened again", async ({ page, server, scripts }) => {
  const project = await furnished(page, server, scripts);
  await page.goto(`${project}/insights`);
  await alive(page, scripts);
  await page.getByRole("navigation", { name: "Questions" }).getByRole("link", { name: "SQL" }).click();
  await expect(page.getByRole("heading", { name: "Begin with an example" })).toBeVisible();
  await alive(page, scripts);
  await checkPage(page, "SQL without a query");

  const query = page.getByLabel("Query");
  await query.fill("SELECT event,\n  nothing\nFROM events");
  await press(page, scripts, "Run query", "query");
  await expect(page.getByText("Unknown field `nothing` (line 2, column 3)")).toBeVisible();
  await expect(page.locator(".sql-fault")).toHaveText("2    nothing\n     ^", { useInnerText: true });
  await expect(query).toHaveAttribute("aria-invalid", "true");
  await checkPage(page, "SQL with a fault");

  await query.fill("SELECT event, count() AS events FROM events GROUP BY event ORDER BY events DESC");
  if (scripts) {
    await query.press("Control+Enter");
  } else {
    await page.getByRole("button", { name: "Run query" }).click();
  }
  await expect(rows(page, "Answer")).toHaveCount(2);
  await alive(page, scripts);
  await expect(rows(page, "Answer").first()).toContainText("tea paid");
  await expect(rows(page, "Answer").first().getByRole("cell")).toHaveText("3");
  await expect(page.getByRole("columnheader", { name: "events (Int64)" })).toBeVisible();
  await checkPage(page, "SQL with an answer");
  await shot(page, "sql");

  const csv = await page.request.get((await page.getByRole("link", { name: "Download CSV" }).getAttribute("href"))!);
  expect(await csv.text()).toBe('"event","events"\r\n"tea paid",3\r\n"tea seen",1\r\n');
  const file = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download Parquet" }).click();
  expect((await file).suggestedFilename()).toMatch(/^sql-.*\.parquet$/);

  await page.getByLabel("Name", { exact: true }).fill("Events by name");
  await sent(page, () => page.getByRole("button", { name: "Save insight" }).click());
  await page.waitForURL(/\/sql\?insight=[a-z]{8}$/);
  await expect(page.getByText("Saved Events by name.")).toBeVisible();
  await page.goto(`${project}/insights`);
  await alive(page, scripts);
  await page.getByRole("link", { name: "Events by name", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Events by name" })).toBeVisible();
  await expect(rows(page, "Answer")).toHaveCount(2);
  await alive(page, scripts);
  await page.getByRole("link", { name: "Dashboards and deletion" }).click();
  await expect(page.getByRole("link", { name: "Open in SQL" })).toBeVisible();
});
