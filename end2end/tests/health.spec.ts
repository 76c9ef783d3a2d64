// Health: what reached a project over time, what was refused, and by whom.

import { alive, checkPage, enter, expect, post, projectKey, send, shot, test } from "./helpers";

test("without traffic the page says so", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/projects/1/health");
  await expect(page.getByText("No traffic in this range.")).toBeVisible();
});

test("events are counted immediately, dropped ones with their reason", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const key = await projectKey(page);
  await send(server, key, { event: "healthy", distinct_id: "ada" });
  await send(server, key, { event: "of no one" });
  expect((await post(server, "phc_nobodyhasthiskey", { event: "a", distinct_id: "b" })).status).toBe(401);

  await expect(async () => {
    await page.goto("/projects/1/health");
    const summary = await page.getByText(/events? accepted, /).first().textContent({ timeout: 1_000 });
    expect(Number((summary ?? "").split(" ")[0])).toBeGreaterThan(0);
    await expect(page.locator("#missing_distinct_id")).toBeVisible({ timeout: 1_000 });
  }).toPass();
  await expect(page.getByText("No traffic in this range.")).toHaveCount(0);
  await expect(page.locator("#missing_distinct_id").getByText("In this range", { exact: true })).toBeVisible();
  await expect(page.getByRole("table", { name: "Unknown keys" })).toContainText("phc_nobo...");
  await alive(page, scripts);
  await shot(page, "health");
  await checkPage(page, "health");
});

test("all events of a reason are listed, by page and in a time range", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const key = await projectKey(page);
  for (let n = 0; n < 60; n++) await send(server, key, { event: `without an id ${n}` });
  await page.goto("/projects/1/health");
  await page.getByRole("link", { name: "Dropped and altered events" }).click();
  await expect(page).toHaveURL(/\/projects\/1\/health\/events$/);
  await alive(page, scripts);
  const entries = page.getByRole("main").getByRole("listitem");
  await expect(async () => {
    await page.goto("/projects/1/health/events?code=missing_distinct_id");
    await expect(entries.first()).toContainText("without an id 59", { timeout: 1_000 });
  }).toPass();
  await expect(entries).toHaveCount(50);
  await page.getByRole("link", { name: "Older" }).click();
  await expect(entries.filter({ hasText: "without an id 0" })).toHaveCount(1);
  await expect(page.getByRole("link", { name: "Older" })).toHaveCount(0);
  const oldest = entries.filter({ hasText: "without an id 0" });
  await oldest.locator("summary").click();
  await expect(oldest.locator("pre").first()).toContainText("without an id 0");

  const form = page.getByRole("search", { name: "Dropped and altered events" });
  await form.getByLabel("Received before (UTC)").fill("2020-01-01T00:00");
  await form.getByRole("button", { name: "Filter" }).click();
  await expect(page).toHaveURL(/to=2020/);
  await expect(entries).toHaveCount(0);
  await checkPage(page, "dropped events");
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

/** So many minutes ago, as a field for UTC takes it. */
const ago = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString().slice(0, 16);

test("two times show a part of the range, and a table has the numbers", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/projects/1/health?range=6h&compare=1");
  await alive(page, scripts);
  await expect(page.getByRole("heading", { name: "Events per 5 minutes" })).toBeVisible();
  const form = page.getByRole("search", { name: "Time range" });
  await form.getByLabel("From (UTC)").fill(ago(10));
  await form.getByLabel("To (UTC)").fill(ago(-2));
  await form.getByRole("button", { name: "Zoom" }).click();
  await expect(page).toHaveURL(/range=6h&compare=1&from=.+&to=/);
  await expect(page.getByRole("heading", { name: "Events per minute" })).toBeVisible();
  await expect(page.getByRole("table", { name: "This range and the one before" })).toBeVisible();
  // Up to now and no further.
  const lines = await page.locator("#events tbody tr").count();
  expect(lines).toBeGreaterThanOrEqual(11);
  expect(lines).toBeLessThanOrEqual(12);

  const ranges = page.getByRole("navigation", { name: "Range" });
  await expect(ranges.locator("[aria-current]")).toHaveCount(0);
  await alive(page, scripts);
  await checkPage(page, "health, a part of the range");
  await ranges.getByRole("link", { name: "Zoom out" }).click();
  await expect(page).toHaveURL(/health\?range=6h&compare=1$/);
  await expect(page.getByRole("heading", { name: "Events per 5 minutes" })).toBeVisible();

  await page.goto("/projects/1/health?from=soon&to=later");
  await expect(page.getByText("The time range of the address cannot be read")).toBeVisible();
});

test("dragging over a chart zooms into it", async ({ page, server, scripts }) => {
  test.skip(!scripts, "dragging needs scripts");
  await enter(page, server, scripts);
  await page.goto("/projects/1/health?range=1h");
  await alive(page, scripts);
  const plot = page.locator("#events .chart-drawing");
  await plot.scrollIntoViewIfNeeded();
  const box = (await plot.boundingBox())!;
  const drag = async (from: number, to: number): Promise<void> => {
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * from, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to, y, { steps: 4 });
    await page.mouse.up();
  };
  // Pressing alone leads nowhere.
  await drag(0.5, 0.5);
  await expect(page).toHaveURL(/health\?range=1h$/);
  await expect(page.locator(".chart-brush").first()).toBeHidden();
  // From right to left: minutes 30 to 44 of 60.
  await drag(0.74, 0.51);
  await expect(page).toHaveURL(/range=1h&from=\d{4}-\d\d-\d\dT\d\d%3A\d\d&to=/);
  await expect(page.locator("#events tbody tr")).toHaveCount(15);
  await page.goBack();
  await expect(page.locator("#events tbody tr")).toHaveCount(60);
});

test("the values of a chart are read with the arrow keys and the pointer", async ({ page, server, scripts }) => {
  test.skip(!scripts, "without scripts the table has the values");
  await enter(page, server, scripts);
  const key = await projectKey(page);
  await send(server, key, { event: "read", distinct_id: "ada" });
  await page.goto("/projects/1/health?range=1h");
  await alive(page, scripts);
  const chart = page.getByRole("slider", { name: "Values of Events per minute" });
  await chart.focus();
  await expect(chart).toHaveAttribute("aria-valuetext", /UTC|:\d\d, Accepted: /);
  await expect(page.locator("#events .chart-tip")).toContainText("Accepted");
  await expect(chart).toHaveAttribute("aria-valuenow", "59");
  await page.keyboard.press("ArrowLeft");
  await expect(chart).toHaveAttribute("aria-valuenow", "58");
  await page.keyboard.press("Home");
  await expect(chart).toHaveAttribute("aria-valuenow", "0");
  await page.keyboard.press("Escape");
  await expect(page.locator("#events .chart-tip")).toBeHidden();
  await page.locator("#speed .chart-drawing").hover();
  await expect(page.locator("#speed .chart-tip")).toContainText("p50");
  await page.getByRole("heading", { level: 1 }).hover();
  await expect(page.locator("#speed .chart-tip")).toBeHidden();
});

test("imported events are counted by their own time", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const key = await projectKey(page);
  const timestamp = new Date(Date.now() - 5 * 86_400_000).toISOString();
  await send(server, key, { event: "old", distinct_id: "ada", timestamp });
  await send(server, key, { event: "new", distinct_id: "ada" });
  await expect(async () => {
    await page.goto("/projects/1/health?range=30d");
    await page.getByRole("link", { name: "Count by event time" }).click();
    await expect(page).toHaveURL(/range=30d&by=event-time/, { timeout: 1_000 });
    await expect(page.getByRole("heading", { name: "Events by event time, per 6 hours" })).toBeVisible({ timeout: 1_000 });
    // Steps with events: the one of receipt, and one five days before.
    const counts = await page.locator("#events tbody tr td:last-child").allTextContents();
    expect(counts.filter((count) => count.trim() !== "0").length).toBeGreaterThanOrEqual(2);
  }).toPass();
  await alive(page, scripts);
  await checkPage(page, "health, by event time");
  await page.getByRole("link", { name: "Count by time of receipt" }).click();
  await expect(page.getByRole("heading", { name: "Events per 6 hours" })).toBeVisible();
});
