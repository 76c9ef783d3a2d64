// Subscriptions: the numbers of an insight by mail, with a chart, and those of a dashboard.

import type { Page } from "@playwright/test";
import { withMail } from "../mail";
import { alive, apiKey, call, checkPage, expect, newOrganization, person, send, sent, type Server } from "./helpers";

const test = withMail();

interface Made {
  key: string;
  project: number;
  /** The short id of an insight with the name Payments. */
  insight: string;
  /** The number of a dashboard with it. */
  dashboard: number;
}

/** A project in which two persons paid three times. */
async function furnished(page: Page, server: Server, scripts: boolean): Promise<Made> {
  const key = await apiKey(page, server, scripts);
  const { project, token } = await newOrganization(server, key, "Tea Shop");
  for (const id of ["ada", "ada", "bob"]) await send(server, token, { event: "tea paid", distinct_id: id });
  const query = { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "tea paid" }] };
  await expect(async () => {
    const body = { query, refresh: "force_blocking" };
    const { results } = await call(server, key, "POST", `/api/projects/${project}/query/`, body);
    expect(results[0].count).toBe(3);
  }).toPass();
  const path = `/api/projects/${project}`;
  const dashboard = await call(server, key, "POST", `${path}/dashboards/`, { name: "Growth" });
  const body = { name: "Payments", query, dashboards: [dashboard.id] };
  const made = await call(server, key, "POST", `${path}/insights/`, body);
  return { key, project, insight: made.short_id, dashboard: dashboard.id };
}

test("from an insight to a mail with a chart, and to no more mails", async ({ page, server, scripts, mailbox }) => {
  const { project, insight } = await furnished(page, server, scripts);
  await page.goto(`/projects/${project}/insights/${insight}`);
  await alive(page, scripts);
  await page.getByRole("main").getByRole("link", { name: "Subscriptions", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Subscriptions" })).toBeVisible();
  await alive(page, scripts);
  await page.getByLabel("Title", { exact: true }).fill("Tea of the week");
  await page.getByLabel("Interval", { exact: true }).fill("2");
  await page.getByLabel("Monday", { exact: true }).check();
  await page.getByLabel("Friday", { exact: true }).check();
  await sent(page, () => page.getByRole("button", { name: "Create subscription" }).click());
  await page.waitForURL(/\/subscriptions\?subscription=\d+$/);
  await expect(page.getByText("Saved the subscription.")).toBeVisible();
  const list = page.getByRole("table", { name: "Subscriptions" }).locator("tbody > tr");
  await expect(list).toHaveCount(1);
  await expect(list.first()).toContainText("sent every 2 weeks on Monday and Friday");
  await alive(page, scripts);
  await checkPage(page, "a subscription");

  await sent(page, () => page.getByRole("button", { name: "Send me this mail now" }).click());
  await expect(page.getByText("A mail is on its way to you.")).toBeVisible();
  const mail = await mailbox.wait(person.email, "Test: Tea of the week");
  expect(mail.text).toMatch(/tea paid( +0)+ +3\n/);
  expect(mail.text).toContain("Content-Type: image/png");
  expect(mail.text).toContain("iVBORw0KGgo");
  const link = /http:\S+\/subscriptions\?subscription=\d+/.exec(mail.text)?.[0] ?? "";

  await page.goto(link);
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Unsubscribe" }).click());
  await expect(page.getByText("You get no more mails of this subscription.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Unsubscribe" })).toHaveCount(0);
  await alive(page, scripts);
  await page.locator("details.confirm > summary").click();
  await sent(page, () => page.getByRole("button", { name: "Delete subscription" }).click());
  await page.waitForURL(/\/subscriptions$/);
  await expect(page.getByText("Deleted the subscription.")).toBeVisible();
  await expect(page.getByRole("table", { name: "Subscriptions" })).toHaveCount(0);
});

test("a dashboard has subscriptions, and a refused one shows why", async ({ page, server, scripts, mailbox }) => {
  const { project, dashboard } = await furnished(page, server, scripts);
  await page.goto(`/projects/${project}/dashboards/${dashboard}`);
  await alive(page, scripts);
  await page.getByRole("main").getByRole("link", { name: "Subscriptions", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Subscriptions" })).toBeVisible();
  await alive(page, scripts);
  await page.getByLabel("Send", { exact: true }).selectOption("monthly");
  await page.getByLabel("Monday", { exact: true }).check();
  await sent(page, () => page.getByRole("button", { name: "Create subscription" }).click());
  await expect(page.getByText("Enter which of these days of the month is meant.")).toBeVisible();
  await expect(page.getByLabel("Which of these days")).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByLabel("Monday", { exact: true })).toBeChecked();
  await alive(page, scripts);
  await checkPage(page, "a refused subscription");
  await page.getByLabel("Which of these days").selectOption("-1");
  await sent(page, () => page.getByRole("button", { name: "Create subscription" }).click());
  await page.waitForURL(/\/subscriptions\?subscription=\d+$/);
  await expect(page.getByRole("main")).toContainText("sent every month on the last Monday");
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Send me this mail now" }).click());
  const mail = await mailbox.wait(person.email, "Test: Growth");
  expect(mail.text).toContain("Open Payments");
});
