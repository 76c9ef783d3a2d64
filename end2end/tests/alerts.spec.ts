// Alerts: from a question to a saved chart, a dashboard, a share link, and a mail and a request
// to a webhook when the number is beyond a bound.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Locator, Page } from "@playwright/test";
import { withMail } from "../mail";
import { alive, apiKey, call, checkPage, enter, expect, newOrganization, person, send, sent, type Server } from "./helpers";

interface Hook {
  url: string;
  /** The bodies that it has received. */
  received: string[];
}

// The webhook is on this machine, which Weir reaches only where it is allowed to.
const test = withMail(["--egress-allow", "127.0.0.1"]).extend<{ hook: Hook }>({
  hook: async ({}, use) => {
    const hook: Hook = { url: "", received: [] };
    const http = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk) => (body += chunk));
      request.on("end", () => {
        hook.received.push(body);
        response.writeHead(204);
        response.end();
      });
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    hook.url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/hook`;
    await use(hook);
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  },
});

interface Made {
  key: string;
  project: number;
  /** The address of the project. */
  root: string;
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
  return { key, project, root: `/projects/${project}` };
}

/** The card with the state of the alert in the address. */
const state = (page: Page, name: string): Locator => page.getByRole("region", { name, exact: true });

/** Loads the page until the state of the alert has this word. */
async function reaches(page: Page, scripts: boolean, name: string, word: string): Promise<void> {
  await expect(async () => {
    await page.reload();
    await expect(state(page, name)).toContainText(word, { timeout: 1000 });
  }).toPass();
  await alive(page, scripts);
}

test("from a question to a saved chart, a dashboard, a share link and an alert that fires", async ({
  page,
  server,
  scripts,
  browser,
  mailbox,
  hook,
}) => {
  const { root } = await furnished(page, server, scripts);
  await page.goto(`${root}/insights/new`);
  await alive(page, scripts);
  await page.getByLabel("Event", { exact: true }).fill("tea paid");
  await page.getByRole("button", { name: "Answer question" }).click();
  await page.waitForURL(/[?&]event=/);
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("Payments");
  await sent(page, () => page.getByRole("button", { name: "Save insight" }).click());
  await page.waitForURL(/\/insights\/[a-z]{8}$/);
  const insight = page.url();

  await page.goto(`${root}/dashboards/new`);
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("Growth");
  await sent(page, () => page.getByRole("button", { name: "Create dashboard" }).click());
  await page.waitForURL(/\/dashboards\/\d+$/);
  await alive(page, scripts);
  const dashboard = page.url();
  await page.getByLabel("Insight", { exact: true }).selectOption("Payments");
  await sent(page, () => page.getByRole("button", { name: "Add to dashboard" }).click());
  const numbers = page.getByRole("table", { name: "Numbers of Payments" }).locator("tbody > tr").first();
  await expect(numbers.getByRole("cell").first()).toHaveText("3");

  await page.goto(`${dashboard}/sharing`);
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Create share link" }).click());
  await page.waitForURL(/\/sharing\/link$/);
  const address = (await page.locator(".reveal-value code").textContent()) ?? "";
  const visitor = await browser.newContext({ baseURL: server.url, javaScriptEnabled: scripts });
  const other = await visitor.newPage();
  await other.goto(address);
  await alive(other, scripts);
  await expect(other.getByRole("heading", { level: 1, name: "Growth" })).toBeVisible();
  await visitor.close();

  await page.goto(insight);
  await alive(page, scripts);
  await page.getByRole("main").getByRole("link", { name: "Alerts", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Alerts" })).toBeVisible();
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("Many payments");
  await page.getByLabel("Upper bound").fill("2");
  await page.getByLabel("Interval", { exact: true }).selectOption("current");
  await page.getByLabel("Webhook").fill(hook.url);
  await sent(page, () => page.getByRole("button", { name: "Create alert" }).click());
  await page.waitForURL(/\/alerts\?alert=\d+$/);
  await expect(page.getByText("Saved Many payments.")).toBeVisible();
  await reaches(page, scripts, "Many payments", "Firing");
  await checkPage(page, "an alert that fires");
  const counted = page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Insights" });
  await expect(counted).toHaveText("Insights1 firing alert");
  await expect(counted).toHaveAttribute("title", "Many payments fires");

  const mail = await mailbox.wait(person.email, "The alert Many payments fires");
  expect(mail.text).toContain("tea paid: the value 3");
  const link = /http:\S+\/alerts\?alert=\d+/.exec(mail.text)?.[0] ?? "";
  await expect.poll(() => hook.received.length).toBe(1);
  const received = JSON.parse(hook.received[0]);
  expect(received.url).toBe(link);
  expect(received).toMatchObject({ state: "Firing", value: 3, alert: { name: "Many payments" } });

  await page.goto(`${root}/insights`);
  await alive(page, scripts);
  await page.getByRole("link", { name: "Alert fires" }).click();
  await page.waitForURL(/\/alerts$/);
  await alive(page, scripts);

  await page.goto(link);
  await alive(page, scripts);
  const checks = page.getByRole("table", { name: "Last checks" }).locator("tbody > tr");
  await expect(checks).toHaveCount(1);
  await expect(checks.first()).toContainText("Yes");
  await page.getByLabel("For", { exact: true }).selectOption("1 week");
  await sent(page, () => page.getByRole("button", { name: "Snooze alert" }).click());
  await expect(state(page, "Many payments")).toContainText("Snoozed");
  await alive(page, scripts);
  await page.goto(`${root}/insights`);
  await alive(page, scripts);
  await expect(counted).toHaveText("Insights");
  await expect(page.getByRole("link", { name: "Alert fires" })).toHaveCount(0);
  await page.goto(link);
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Check again" }).click());
  await expect(state(page, "Many payments")).not.toContainText("Snoozed");
  await alive(page, scripts);

  await page.getByLabel("Name", { exact: true }).fill("Payments of the day");
  await page.getByLabel("Upper bound").fill("10");
  await sent(page, () => page.getByRole("button", { name: "Save alert" }).click());
  await expect(page.getByText("Saved Payments of the day.")).toBeVisible();
  await reaches(page, scripts, "Payments of the day", "Not firing");
  await page.locator("details.confirm > summary").click();
  await sent(page, () => page.getByRole("button", { name: "Delete alert" }).click());
  await page.waitForURL(/\/alerts$/);
  await expect(page.getByText("Deleted Payments of the day.")).toBeVisible();
  await expect(page.getByRole("table", { name: "Alerts" })).toHaveCount(0);
});

test("a refused alert shows the fault at its field", async ({ page, server, scripts }) => {
  const { key, project, root } = await furnished(page, server, scripts);
  const query = { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "tea paid" }] };
  const made = await call(server, key, "POST", `/api/projects/${project}/insights/`, { name: "Payments", query });
  await page.goto(`${root}/insights/${made.short_id}/alerts`);
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("Many payments");
  await sent(page, () => page.getByRole("button", { name: "Create alert" }).click());
  await expect(page.getByText("Enter at least one bound.")).toBeVisible();
  await expect(page.getByLabel("Lower bound")).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("Many payments");
  await alive(page, scripts);
  await checkPage(page, "a refused alert");
});

test("an insight without a number has no alerts, and the page needs a session", async ({ page, server, scripts }) => {
  const { key, project, root } = await furnished(page, server, scripts);
  const query = { kind: "LifecycleQuery", series: [{ kind: "EventsNode", event: "tea paid" }] };
  const made = await call(server, key, "POST", `/api/projects/${project}/insights/`, { name: "Lifecycle", query });
  await page.goto(`${root}/insights/${made.short_id}/alerts`);
  await alive(page, scripts);
  await expect(page.getByRole("heading", { name: "No number to check" })).toBeVisible();
  await checkPage(page, "no number to check");
  await enter(page, server, scripts);
  await page.context().clearCookies();
  await page.goto(`${root}/insights/${made.short_id}/alerts`);
  await page.waitForURL(/\/login\?next=/);
});
