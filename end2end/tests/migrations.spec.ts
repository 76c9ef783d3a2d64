// Migrations: started, run with the script that the page prints, followed, finished.

import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { alive, checkPage, enter, expect, projectKey, shell, shot, test } from "./helpers";

/** A name that would do harm if it stood in a script as it is. */
const file = "it's $(touch owned); old.jsonl";

test("the empty page says how to migrate", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/projects/1/migrations");
  await expect(page.getByRole("heading", { name: "No events imported yet" })).toBeVisible();
  await expect(page.getByText("Try it on a new project first")).toBeVisible();
  await alive(page, scripts);
  await checkPage(page, "no migration");
});

test("a migration needs a source", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/projects/1/migrations");
  await alive(page, scripts);
  await page.getByLabel("Source", { exact: true }).fill(" ");
  await page.getByLabel("Number of events", { exact: true }).fill("12");
  await page.getByRole("button", { name: "Start migration" }).click();
  await expect(page.getByText("Say where the events come from.")).toBeVisible();
  await expect(page.getByLabel("Number of events", { exact: true })).toHaveValue("12");
});

test("the printed script imports, resumes where it stopped, and is followed", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const directory = await mkdtemp(join(tmpdir(), "weir-migration-"));
  const line = (n: number) =>
    JSON.stringify({ event: "past", distinct_id: "ada", timestamp: `2024-01-01T00:00:0${n}Z` });
  await writeFile(join(directory, file), [1, 2, 3].map(line).join("\n"));

  await page.goto("/projects/1/migrations");
  await alive(page, scripts);
  await page.getByLabel("Source", { exact: true }).fill("Old tool");
  await page.getByLabel("File", { exact: true }).fill(file);
  await page.getByLabel("Number of events", { exact: true }).fill("4");
  await page.getByRole("button", { name: "Start migration" }).click();
  await page.waitForURL(/plan=/);
  const plan = page.getByRole("main").locator("section", { has: page.getByRole("heading", { name: "Old tool" }) });
  const tabs = plan.locator(".tabs");
  await expect(tabs.locator("pre:visible")).toContainText("weir import --project-key 'phc_");
  await tabs.getByText("bash and curl", { exact: true }).click();
  const script = (await tabs.locator("pre:visible").textContent()) ?? "";
  await writeFile(join(directory, "import.sh"), script);
  const run = () => shell(`cd '${directory}' && bash import.sh`);
  expect(await run()).toContain("3 of 3 lines sent");
  expect(await run()).toBe("");
  expect((await shell(`ls '${directory}'`)).split("\n")).not.toContain("owned");

  await expect(async () => {
    await page.reload();
    await expect(plan.getByText(/^3 of 4 \(/).first()).toBeVisible({ timeout: 1_000 });
  }).toPass();
  const came = page.getByRole("table", { name: "Imported events by source" });
  await expect(came).toContainText("In order");
  await alive(page, scripts);
  await shot(page, "migrations");
  await checkPage(page, "migrations");

  // The usual columns fit beside the navigation, and the others are chosen.
  await page.setViewportSize({ width: 1280, height: 800 });
  const beyond = () => page.locator(".table-frame", { has: came }).evaluate((frame) => frame.scrollWidth - frame.clientWidth);
  expect(await beyond()).toBeLessThanOrEqual(0);
  await expect(came.getByRole("columnheader")).toHaveText(["Source", "Accepted", "Dropped", "Per minute", "Event times", "Order"]);
  await page.locator(".columns-menu > summary").click();
  await page.getByRole("checkbox", { name: "Last request" }).check();
  await page.getByRole("checkbox", { name: "Per minute" }).uncheck();
  await page.getByRole("button", { name: "Show columns" }).click();
  await expect(page).toHaveURL(/plan=.*columns=last/);
  await expect(came.getByRole("columnheader")).toHaveText(["Source", "Accepted", "Dropped", "Event times", "Order", "Last request"]);
  await alive(page, scripts);
  await checkPage(page, "migrations with chosen columns");

  // With more columns than fit, the frame scrolls below its headings.
  const all = ["historical", "sent", "accepted", "dropped", "rate", "times", "order", "last"];
  await page.setViewportSize({ width: 1280, height: 140 });
  await page.goto(`/projects/1/migrations?${all.map((name) => `columns=${name}`).join("&")}`);
  await alive(page, scripts);
  const [scrolled, away] = await page.locator(".table-frame", { has: came }).evaluate((frame) => {
    frame.scrollTop = frame.scrollHeight;
    const heading = frame.querySelector("th")!.getBoundingClientRect();
    return [frame.scrollTop, heading.top - frame.getBoundingClientRect().top];
  });
  expect(scrolled).toBeGreaterThan(0);
  expect(Math.abs(away!)).toBeLessThan(2);
  await page.setViewportSize({ width: 1280, height: 800 });

  const answer = await page.request.get("/_csv/projects/1/migrations");
  expect(answer.status()).toBe(200);
  expect(await answer.text()).toContain("historical_migration");
});

test("old events without the mark cause a warning", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const key = await projectKey(page);
  await fetch(`${server.url}/batch/`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ api_key: key, batch: [{ event: "late", distinct_id: "bob", timestamp: "2024-02-01T00:00:00Z" }] }),
  });
  await expect(async () => {
    await page.goto("/projects/1/migrations");
    await expect(page.getByText(/were sent without historical_migration/)).toBeVisible({ timeout: 2_000 });
  }).toPass();
});

test("a migration is marked finished", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/projects/1/migrations");
  await alive(page, scripts);
  await page.getByLabel("Source", { exact: true }).fill("Older tool");
  await page.getByLabel("Number of events", { exact: true }).fill("4");
  await page.getByRole("button", { name: "Start migration" }).click();
  await page.waitForURL(/plan=/);
  await alive(page, scripts);
  const plan = page.getByRole("main").locator("section", { has: page.getByRole("heading", { name: "Older tool" }) });
  await plan.locator("summary", { hasText: "Mark finished" }).first().click();
  await plan.getByRole("button", { name: "Mark finished" }).last().click();
  await expect(plan.getByText("Finished", { exact: true }).first()).toBeVisible();
});
