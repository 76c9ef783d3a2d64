// Limits of an organization: staff chooses them, members see them, and what happens
// beyond them.

import type { Page } from "@playwright/test";
import { alive, apiKey, call, checkPage, expect, newOrganization, type Organization, post, send, type Server, sent, test } from "./helpers";

/** An organization for this test, and a key of the staff. */
async function organization(page: Page, server: Server, scripts: boolean, name: string): Promise<{ key: string; home: Organization }> {
  const key = await apiKey(page, server, scripts);
  return { key, home: await newOrganization(server, key, name) };
}

test("staff chooses limits, and members see them and what is used", async ({ page, server, scripts }) => {
  const { home } = await organization(page, server, scripts, "Limited House");
  await page.goto("/instance");
  await alive(page, scripts);
  await page.getByRole("main").getByRole("link", { name: "Organizations of this instance" }).click();
  await page.waitForURL("**/instance/organizations");
  await alive(page, scripts);
  const table = page.getByRole("table", { name: "Organizations of this instance" });
  await expect(table.getByRole("link", { name: "Limited House" }).first()).toHaveAttribute("href", /^\/instance\/organizations\//);
  await page.goto(`/instance/organizations/${home.id}`);
  await alive(page, scripts);

  const action = page.getByLabel("Events per month: beyond the limit");
  const number = page.getByLabel("Events per month: limit", { exact: true });
  await expect(page.locator("#events_per_month")).toContainText("Not limited.");
  await action.selectOption({ label: "Requests with events are refused with status 429" });
  await sent(page, () => page.getByRole("button", { name: "Save limits" }).click());
  await expect(number).toHaveAccessibleDescription(/This field is required/);
  await alive(page, scripts);
  await expect(action).toHaveValue("reject");
  await number.fill("3");
  await sent(page, () => page.getByRole("button", { name: "Save limits" }).click());
  await expect(page.getByText("The limits of Limited House are saved.")).toBeVisible();
  await expect(page.locator("#events_per_month")).toContainText("Limited to 3.");
  await alive(page, scripts);
  await checkPage(page, "limits of an organization");

  for (const event of ["one", "two", "three"]) await send(server, home.token, { event, distinct_id: "ada" });
  const beyond = await post(server, home.token, { event: "four", distinct_id: "ada" });
  expect(beyond.status).toBe(429);
  expect(Number(beyond.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await beyond.json()).toMatchObject({ type: "throttled_error", code: "over_limit" });

  await page.goto(`/organizations/${home.id}`);
  await alive(page, scripts);
  const shown = page.locator("#limits").getByRole("row").filter({ hasText: "Events per month" });
  await expect(shown).toContainText("100.0%");
  await expect(shown).toContainText("Requests with events are refused with status 429");
  await expect(page.locator("#limits").getByRole("row").filter({ hasText: "Members" })).toContainText("No limit");
  await checkPage(page, "organization with a limit");

  await page.goto(`/organizations/${home.id}/activity`);
  await expect(page.getByText("Events per month: limit")).toBeVisible();
  await expect(page.getByText("3, then refuse more", { exact: true })).toBeVisible();
});

test("events that a limit drops or refuses are shown in Health", async ({ page, server, scripts }) => {
  const { key, home } = await organization(page, server, scripts, "Dropping House");
  const limits = `/api/instance/organizations/${home.id}/limits/`;
  await call(server, key, "PATCH", limits, { events_per_month_limit: 1, events_per_month_action: "drop" });
  await send(server, home.token, { event: "kept", distinct_id: "ada" });
  await send(server, home.token, { event: "beyond", distinct_id: "ada" });
  await call(server, key, "PATCH", limits, { events_per_month_action: "reject" });
  expect((await post(server, home.token, { event: "refused", distinct_id: "ada" })).status).toBe(429);
  await expect(async () => {
    await page.goto(`/projects/${home.project}/health`);
    await expect(page.locator("#over_monthly_limit")).toBeVisible({ timeout: 1_000 });
    const rejected = page.getByRole("table", { name: "Rejected requests by reason" });
    await expect(rejected).toContainText("over_limit", { timeout: 1_000 });
  }).toPass();
  await expect(async () => {
    await page.goto(`/projects/${home.project}/health/events?code=over_monthly_limit`);
    const entries = page.getByRole("main").getByRole("listitem");
    await expect(entries.filter({ hasText: "beyond" })).toHaveCount(1, { timeout: 1_000 });
  }).toPass();
});

test("an invite beyond the limit of members is refused at its field", async ({ page, server, scripts }) => {
  const { key, home } = await organization(page, server, scripts, "Full House");
  const limits = `/api/instance/organizations/${home.id}/limits/`;
  await call(server, key, "PATCH", limits, { members_limit: 1, members_action: "reject" });
  await page.goto(`/organizations/${home.id}/invites`);
  await alive(page, scripts);
  await page.getByLabel("E-mail addresses").fill("linus@weir.example");
  await page.getByRole("button", { name: "Check addresses" }).click();
  await expect(page.getByText("Will be invited", { exact: true })).toBeVisible();
  await alive(page, scripts);
  await sent(page, () => page.getByRole("button", { name: "Send invites" }).click());
  await expect(page.getByLabel("E-mail addresses")).toHaveAccessibleDescription(/as many members, with those who are invited/);
});
