// Insights: a question of trends is asked, saved, opened again, changed and deleted.

import type { Locator, Page } from "@playwright/test";
import { alive, apiKey, call, checkPage, enter, expect, newOrganization, send, sent, type Server, test } from "./helpers";

/** The numbers of the whole range. */
const numbers = (page: Page): Locator => page.getByRole("table", { name: "Numbers of the whole range" }).locator("tbody > tr");

/** A project in which two persons paid three times. Returns the address of its insights. */
async function furnished(page: Page, server: Server, scripts: boolean): Promise<{ insights: string; key: string; project: number }> {
  const key = await apiKey(page, server, scripts);
  const { project, token } = await newOrganization(server, key, "Tea Shop");
  await send(server, token, { event: "tea paid", distinct_id: "ada", properties: { price: 2.5, plan: "pro" } });
  await send(server, token, { event: "tea paid", distinct_id: "ada", properties: { price: 4, plan: "pro" } });
  await send(server, token, { event: "tea paid", distinct_id: "bob", properties: { price: 1 } });
  const query = { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "tea paid" }] };
  await expect(async () => {
    const { results } = await call(server, key, "POST", `/api/projects/${project}/query/`, { query, refresh: "force_blocking" });
    expect(results[0].count).toBe(3);
  }).toPass();
  return { insights: `/projects/${project}/insights`, key, project };
}

/** Asks the question of the form. */
async function ask(page: Page, scripts: boolean): Promise<void> {
  await page.getByRole("button", { name: "Answer question" }).click();
  await page.waitForURL(/[?&]event=/);
  await alive(page, scripts);
}

test("before the first event the page leads to the start", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/projects/1/insights");
  await expect(page.getByRole("heading", { name: "No event yet" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Send the first event" })).toHaveAttribute("href", "/projects/1/start");
  await alive(page, scripts);
  await checkPage(page, "no event for insights");
});

test("a question is asked, saved, opened again, changed and deleted", async ({ page, server, scripts }) => {
  const { insights } = await furnished(page, server, scripts);
  await page.goto(insights);
  await expect(page.getByRole("heading", { name: "No insight saved yet" })).toBeVisible();
  await alive(page, scripts);
  await checkPage(page, "no insight");
  await page.getByRole("link", { name: "Ask a question" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "New insight" })).toBeVisible();
  await alive(page, scripts);

  await page.getByLabel("Event", { exact: true }).fill("tea paid");
  await page.getByLabel("Compute").selectOption("Unique persons");
  await page.getByLabel("Break down by").fill("plan");
  await page.getByLabel("Compare with the period before").check();
  await ask(page, scripts);
  await expect(numbers(page)).toHaveCount(2);
  await expect(numbers(page).filter({ hasText: "pro" }).getByRole("cell").first()).toHaveText("1");
  await expect(numbers(page).filter({ hasText: "Without a value" }).getByRole("cell").first()).toHaveText("1");
  await checkPage(page, "an answer with a breakdown");

  await page.getByLabel("Break down by").fill("");
  await page.getByLabel("Compare with the period before").uncheck();
  await ask(page, scripts);
  await expect(numbers(page)).toHaveCount(1);
  await expect(numbers(page).getByRole("cell").first()).toHaveText("2");
  await page.getByText("Show the numbers").click();
  const days = page.getByRole("figure").getByRole("table").locator("tbody > tr");
  await expect(days).toHaveCount(8);
  await expect(days.last().getByRole("cell")).toHaveText("2");

  const name = page.getByLabel("Name", { exact: true });
  await expect(name).toHaveValue("Unique persons: tea paid");
  await name.fill("Tea drinkers");
  await sent(page, () => page.getByRole("button", { name: "Save insight" }).click());
  await page.waitForURL(/\/insights\/[a-z]{8}$/);
  await expect(page.getByText("Saved Tea drinkers.")).toBeVisible();
  await expect(page.getByRole("heading", { level: 1, name: "Tea drinkers" })).toBeVisible();
  await expect(page.getByRole("navigation", { name: "Breadcrumb" })).toContainText("Tea drinkers");

  await page.goto(`${insights}?q=DRINK`);
  await alive(page, scripts);
  await page.getByRole("link", { name: "Tea drinkers", exact: true }).click();
  await expect(page.getByLabel("Event", { exact: true })).toHaveValue("tea paid");
  await expect(numbers(page).getByRole("cell").first()).toHaveText("2");
  await alive(page, scripts);

  // The saved question is changed by the answered one.
  await page.getByLabel("Compute").selectOption("Sum");
  await page.getByLabel("Of property").fill("price");
  await ask(page, scripts);
  await expect(numbers(page).getByRole("cell").first()).toHaveText("7.5");
  await sent(page, () => page.getByRole("button", { name: "Save changes" }).click());
  await page.waitForURL(/\/insights\/[a-z]{8}$/);
  await expect(page.getByLabel("Of property")).toHaveValue("price");
  await expect(numbers(page).getByRole("cell").first()).toHaveText("7.5");
  await alive(page, scripts);

  await sent(page, () => page.getByRole("button", { name: "Delete insight" }).click());
  await page.waitForURL(/\/insights$/);
  await expect(page.getByRole("heading", { name: "No insight saved yet" })).toBeVisible();
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Undo" }).click());
  await expect(page.getByRole("link", { name: "Tea drinkers", exact: true })).toBeVisible();
});

test("a fault of a question is at its field", async ({ page, server, scripts }) => {
  const { insights } = await furnished(page, server, scripts);
  await page.goto(`${insights}/new?event=tea+paid&math=sum`);
  await alive(page, scripts);
  const property = page.getByLabel("Of property");
  await expect(property).toHaveAttribute("aria-invalid", "true");
  await expect(page.locator("#property-fault")).toContainText("This field is required.");
  await expect(page.getByRole("button", { name: "Save insight" })).toHaveCount(0);
  await checkPage(page, "a question with a fault");
  await property.fill("price");
  await ask(page, scripts);
  await expect(numbers(page).getByRole("cell").first()).toHaveText("7.5");

  await page.goto(`${insights}/new?event=tea+paid&interval=minute`);
  await expect(page.locator("#interval-fault")).toContainText("Choose a longer interval or a shorter range.");
});

test("a question that the form cannot show says so", async ({ page, server, scripts }) => {
  const { insights, key, project } = await furnished(page, server, scripts);
  const query = { kind: "FunnelsQuery", series: [{ event: "tea paid" }, { event: "tea drunk" }] };
  const saved = await call(server, key, "POST", `/api/projects/${project}/insights/`, { name: "From cup to cup", query });
  await page.goto(`${insights}/${saved.short_id}`);
  await expect(page.getByRole("heading", { level: 1, name: "From cup to cup" })).toBeVisible();
  await expect(page.getByText("Its question has parts that this page cannot show")).toBeVisible();
  await expect(page.getByRole("button", { name: "Answer question" })).toHaveCount(0);
  await alive(page, scripts);
  await checkPage(page, "an insight of the API");
});
