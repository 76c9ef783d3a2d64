// Health: what reached a project over time, what was refused, and by whom.

import { alive, checkPage, enter, expect, post, projectKey, send, shot, test } from "./helpers";

test.describe.configure({ mode: "serial" });

test("without traffic the page says so", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/projects/1/health");
  await expect(page.getByText("No traffic in this range.")).toBeVisible();
});

test("events are counted at once, dropped ones with their reason", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const key = await projectKey(page);
  await send(server, key, { event: "healthy", distinct_id: "ada" });
  await send(server, key, { event: "of no one" });
  expect((await post(server, "phc_nobodyhasthiskey", { event: "a", distinct_id: "b" })).status).toBe(401);

  await expect(async () => {
    await page.goto("/projects/1/health");
    const told = await page.getByText(/events accepted, /).first().textContent({ timeout: 1_000 });
    expect(Number((told ?? "").split(" ")[0])).toBeGreaterThan(0);
    await expect(page.locator("#missing_distinct_id")).toBeVisible({ timeout: 1_000 });
  }).toPass();
  await expect(page.getByText("No traffic in this range.")).toHaveCount(0);
  await expect(page.locator("#missing_distinct_id").getByText("In this range", { exact: true })).toBeVisible();
  await expect(page.getByRole("table", { name: "Unknown keys" })).toContainText("phc_nobo...");
  await alive(page, scripts);
  await shot(page, "health");
  await checkPage(page, "health");
});

test("range and comparison are in the address", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/projects/1/health");
  const ranges = page.getByRole("navigation", { name: "Range" });
  await expect(ranges.getByRole("link", { name: "24 hours" })).toHaveAttribute("aria-current", "true");
  await ranges.getByRole("link", { name: "7 days" }).click();
  await expect(page).toHaveURL(/range=7d/);
  await expect(ranges.getByRole("link", { name: "7 days" })).toHaveAttribute("aria-current", "true");
  await ranges.getByRole("link", { name: "Compare with previous" }).click();
  await expect(page).toHaveURL(/range=7d/);
  await expect(page.getByRole("table", { name: "This range and the one before" })).toBeVisible();
  await page.reload();
  await expect(ranges.getByRole("link", { name: "Do not compare" })).toBeVisible();
  await ranges.getByRole("link", { name: "30 days" }).click();
  await expect(page.getByText("there is nothing before this range to compare with")).toBeVisible();
});
