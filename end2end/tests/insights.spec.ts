// Insights: questions of each kind are asked, saved and opened again.

import type { Locator, Page } from "@playwright/test";
import { alive, apiKey, call, checkPage, enter, expect, newOrganization, send, sent, type Server, test } from "./helpers";

/** The numbers of the whole range. */
const numbers = (page: Page): Locator => page.getByRole("table", { name: "Numbers of the whole range" }).locator("tbody > tr");

/** The address of the insights of a project, and how to call the API for it. */
interface Furnished {
  insights: string;
  key: string;
  project: number;
  token: string;
}

/** A project in which two persons paid three times. Returns the address of its insights. */
async function furnished(page: Page, server: Server, scripts: boolean): Promise<Furnished> {
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
  return { insights: `/projects/${project}/insights`, key, project, token };
}

/** The same project, in which three persons had seen the tea two days before. */
async function seen(page: Page, server: Server, scripts: boolean): Promise<Furnished> {
  const made = await furnished(page, server, scripts);
  const timestamp = new Date(Date.now() - 2 * 24 * 60 * 60 * 1000).toISOString();
  for (const id of ["ada", "bob", "cy"]) {
    await send(server, made.token, { event: "tea seen", distinct_id: id, timestamp });
  }
  const query = { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "tea seen" }] };
  await expect(async () => {
    const { results } = await call(server, made.key, "POST", `/api/projects/${made.project}/query/`, { query, refresh: "force_blocking" });
    expect(results[0].count).toBe(3);
  }).toPass();
  return made;
}

/** Asks the question of the form, one field of which has this name. */
async function ask(page: Page, scripts: boolean, field = "event"): Promise<void> {
  await page.getByRole("button", { name: "Answer question" }).click();
  await page.waitForURL(new RegExp(`[?&]${field}=`));
  await alive(page, scripts);
}

/** Opens the form of a kind of questions. */
async function choose(page: Page, scripts: boolean, insights: string, kind: string): Promise<void> {
  await page.goto(`${insights}/new`);
  await alive(page, scripts);
  const kinds = page.getByRole("navigation", { name: "Kinds of questions" });
  await expect(kinds.getByRole("link", { name: "Trends" })).toHaveAttribute("aria-current", "page");
  await kinds.getByRole("link", { name: kind }).click();
  await expect(kinds.getByRole("link", { name: kind })).toHaveAttribute("aria-current", "page");
  await alive(page, scripts);
}

/** Saves the question under a name, and opens it from the list, which shows its kind. */
async function saveAndOpen(page: Page, scripts: boolean, insights: string, name: string, kind: string): Promise<void> {
  await page.getByLabel("Name", { exact: true }).fill(name);
  await sent(page, () => page.getByRole("button", { name: "Save insight" }).click());
  await page.waitForURL(/\/insights\/[a-z]{8}$/);
  await expect(page.getByText(`Saved ${name}.`)).toBeVisible();
  await page.goto(insights);
  await expect(page.getByRole("row", { name }).getByRole("cell", { name: kind })).toBeVisible();
  await alive(page, scripts);
  await page.getByRole("link", { name, exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name })).toBeVisible();
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
  const query = { kind: "EventsQuery", select: ["event"] };
  const saved = await call(server, key, "POST", `/api/projects/${project}/insights/`, { name: "All of it", query });
  await page.goto(`${insights}/${saved.short_id}`);
  await expect(page.getByRole("heading", { level: 1, name: "All of it" })).toBeVisible();
  await expect(page.getByText("Its question has parts that this page cannot show")).toBeVisible();
  await expect(page.getByRole("button", { name: "Answer question" })).toHaveCount(0);
  await alive(page, scripts);
  await checkPage(page, "an insight of the API");
});

test("a funnel is asked, saved and opened again", async ({ page, server, scripts }) => {
  const { insights } = await seen(page, server, scripts);
  const steps = page.getByRole("table", { name: "Persons of each step" }).locator("tbody > tr");
  const step = (number: number): Locator => page.getByLabel(`Step ${number}`, { exact: true });
  await choose(page, scripts, insights, "Funnel");
  await expect(step(3)).toBeVisible();
  await expect(step(4)).toHaveCount(0);
  await expect(steps).toHaveCount(0);
  await checkPage(page, "the form of a funnel");

  await step(1).fill("tea seen");
  await ask(page, scripts, "step1");
  await expect(page.locator("#step2-fault")).toContainText("Enter at least 2 steps.");
  await page.getByRole("button", { name: "Add step" }).click();
  await page.waitForURL(/[?&]steps=4/);
  await alive(page, scripts);
  await expect(step(1)).toHaveValue("tea seen");
  await expect(page.locator("#step2-fault")).toHaveCount(0);
  await step(4).fill("tea paid");
  await ask(page, scripts, "step4");

  // Empty fields are no steps.
  await expect(step(2)).toHaveValue("tea paid");
  await expect(step(4)).toHaveCount(0);
  await expect(steps.first().getByRole("cell")).toHaveText(["3", "-", "100.0%", "-", "-"]);
  await expect(steps.last().getByRole("cell")).toHaveText(["2", "1", "66.7%", "66.7%", /^\d+ [dh]/]);
  const figure = page.getByRole("figure", { name: "Funnel: tea seen, tea paid" });
  await expect(figure).toContainText("2 of 3 persons did all steps: 66.7%.");
  await expect(figure.getByRole("listitem").last()).toContainText("2 (66.7%)");
  await checkPage(page, "the answer of a funnel");

  await page.getByLabel("Order of steps").selectOption("In any order");
  await page.getByLabel("Break down by").fill("plan");
  await ask(page, scripts, "breakdown");
  await expect(steps.first()).toContainText("Completed 1 step");
  await expect(steps.filter({ hasText: "pro" })).toHaveCount(2);
  await checkPage(page, "the answer of a funnel with a breakdown");

  await page.getByLabel("Order of steps").selectOption("In their order");
  await page.getByLabel("Break down by").fill("");
  await ask(page, scripts, "step1");
  await expect(steps).toHaveCount(2);
  await saveAndOpen(page, scripts, insights, "Buyers", "Funnel");
  await expect(step(1)).toHaveValue("tea seen");
  await expect(step(2)).toHaveValue("tea paid");
  await expect(steps.last().getByRole("cell").first()).toHaveText("2");
  await expect(page.getByRole("navigation", { name: "Kinds of questions" })).toHaveCount(0);
});

test("retention is asked, saved and opened again", async ({ page, server, scripts }) => {
  const { insights } = await seen(page, server, scripts);
  const cohorts = page.getByRole("table", { name: "Persons who came back" }).locator("tbody > tr");
  await choose(page, scripts, insights, "Retention");
  await page.getByLabel("Persons begin with").fill("tea seen");
  await page.getByLabel("They come back with").fill("tea paid");
  await page.getByLabel("Number of periods").fill("3");
  await ask(page, scripts, "target_event");
  // All cohorts together, and one for each day.
  await expect(cohorts).toHaveCount(4);
  // The last day is not over, so all cohorts together have no number of it.
  await expect(cohorts.first().getByRole("cell")).toHaveText(["3", "0.0% (0)", "-"]);
  await expect(cohorts.nth(1).getByRole("cell")).toHaveText(["3", "0.0% (0)", "66.7% (2)"]);
  await expect(cohorts.nth(2).getByRole("cell")).toHaveText(["0", "-"]);
  await expect(cohorts.last().getByRole("cell")).toHaveText(["0"]);
  await page.getByText("Show the numbers").click();
  const shares = page.getByRole("figure").getByRole("table").locator("tbody > tr").getByRole("cell");
  await expect(shares).toHaveText(["100.0%", "0.0%", "-"]);
  await checkPage(page, "the answer of retention");
  await saveAndOpen(page, scripts, insights, "Regulars", "Retention");
  await expect(page.getByLabel("Number of periods")).toHaveValue("3");
  await expect(cohorts.nth(1).getByRole("cell").last()).toHaveText("66.7% (2)");

  await page.goto(`${insights}/new?kind=retention&total=32`);
  await expect(page.locator("#total-fault")).toContainText("The page shows at most 31 periods.");
});

test("stickiness and a lifecycle are asked, saved and opened again", async ({ page, server, scripts }) => {
  const { insights } = await seen(page, server, scripts);
  const active = page.getByRole("table", { name: "Persons by their intervals" }).locator("tbody > tr");
  await choose(page, scripts, insights, "Stickiness");
  await ask(page, scripts, "interval");
  // One person was active on one day, and two on two days.
  await expect(active).toHaveCount(2);
  await expect(active.first().getByRole("cell")).toHaveText(["1", "33.3%"]);
  await expect(active.last().getByRole("cell")).toHaveText(["2", "66.7%"]);
  await expect(active.last().getByRole("rowheader")).toHaveText("2 days");
  await checkPage(page, "the answer of stickiness");
  await page.getByLabel("Count persons with more intervals too").check();
  await ask(page, scripts, "cumulative");
  await expect(active.first().getByRole("cell")).toHaveText(["3", "100.0%"]);
  await saveAndOpen(page, scripts, insights, "Habits", "Stickiness");
  await expect(page.getByLabel("Count persons with more intervals too")).toBeChecked();
  await expect(active.first().getByRole("cell")).toHaveText(["3", "100.0%"]);

  const statuses = page.getByRole("table", { name: "Persons of each status" }).locator("tbody > tr");
  await choose(page, scripts, insights, "Lifecycle");
  await page.getByLabel("Event", { exact: true }).fill("tea seen");
  await ask(page, scripts, "event");
  await expect(statuses).toHaveCount(4);
  await expect(statuses.filter({ hasText: "New" }).getByRole("cell")).toHaveText(["3"]);
  await expect(statuses.filter({ hasText: "Dormant" }).getByRole("cell")).toHaveText(["-3"]);
  await checkPage(page, "the answer of a lifecycle");
  await saveAndOpen(page, scripts, insights, "Guests", "Lifecycle");
  await expect(statuses.filter({ hasText: "New" }).getByRole("cell")).toHaveText(["3"]);
});

test("paths are asked, saved and opened again", async ({ page, server, scripts }) => {
  const { insights, token } = await furnished(page, server, scripts);
  // Half an hour ends a path, so these are one path.
  await send(server, token, { event: "tea drunk", distinct_id: "ada" });
  await send(server, token, { event: "tea drunk", distinct_id: "bob" });
  const edges = page.getByRole("table", { name: "What persons do after what" }).locator("tbody > tr");
  await choose(page, scripts, insights, "Paths");
  await page.getByLabel("Steps", { exact: true }).selectOption("Custom events");
  await page.getByLabel("First step").fill("tea paid");
  await expect(async () => {
    await ask(page, scripts, "start");
    await expect(edges.first().getByRole("cell").nth(2)).toHaveText("2", { timeout: 1000 });
  }).toPass();
  await expect(edges).toHaveCount(1);
  await expect(edges.first().getByRole("rowheader")).toHaveText("tea paid");
  await expect(edges.first().getByRole("cell").first()).toHaveText("tea drunk");
  await checkPage(page, "the answer of paths");
  await edges.first().getByRole("cell").nth(2).getByRole("link").click();
  await page.waitForURL(/\/insights\/persons\?/);
  await alive(page, scripts);
  await expect(page.getByRole("listitem").filter({ hasText: "To step 2: tea drunk" })).toBeVisible();
  const persons = page.getByRole("table", { name: "Persons", exact: true }).locator("tbody > tr");
  await expect(persons).toHaveCount(2);
  await page.getByRole("link", { name: "Open the question" }).click();
  await alive(page, scripts);
  await saveAndOpen(page, scripts, insights, "Rituals", "Paths");
  await expect(page.getByLabel("First step")).toHaveValue("tea paid");
  await expect(edges).toHaveCount(1);
});

test("numbers lead to the persons behind them", async ({ page, server, scripts }) => {
  const { insights } = await seen(page, server, scripts);
  const persons = page.getByRole("table", { name: "Persons", exact: true }).locator("tbody > tr");
  const opened = async (): Promise<void> => {
    await page.waitForURL(/\/insights\/persons\?/);
    await expect(page.getByRole("heading", { level: 1, name: "Persons behind a number" })).toBeVisible();
    await alive(page, scripts);
  };

  await page.goto(`${insights}/new?event=tea+paid&math=total&breakdown=plan`);
  await alive(page, scripts);
  await numbers(page).filter({ hasText: "pro" }).getByRole("link", { name: "2" }).click();
  await opened();
  await expect(page.getByText("1 person", { exact: true })).toBeVisible();
  await expect(persons).toHaveCount(1);
  await expect(persons.getByRole("rowheader")).toHaveText("ada");
  await expect(persons.getByRole("cell").last()).toHaveText("2");
  await checkPage(page, "the persons of a value");
  // Two persons paid today, of whom one has no plan.
  await page.goto(`${insights}/persons?event=tea+paid&math=total`);
  await alive(page, scripts);
  await expect(persons).toHaveCount(2);
  const interval = page.getByLabel("Interval", { exact: true });
  const first = await interval.locator("option").nth(1).getAttribute("value");
  await interval.selectOption(first);
  if (!scripts) await page.getByRole("button", { name: "Filter" }).click();
  await page.waitForURL(/[?&]day=/);
  await alive(page, scripts);
  await expect(page.getByRole("heading", { name: "No person" })).toBeVisible();
  await page.getByRole("link", { name: "Open the question" }).click();
  await expect(page.getByLabel("Event", { exact: true })).toHaveValue("tea paid");
  await alive(page, scripts);

  await page.goto(`${insights}/new?kind=funnel&step1=tea+seen&step2=tea+paid`);
  await alive(page, scripts);
  const steps = page.getByRole("table", { name: "Persons of each step" }).locator("tbody > tr");
  await steps.last().getByRole("link", { name: "1", exact: true }).click();
  await opened();
  await expect(page.getByText("Stopped before step 2: tea paid")).toBeVisible();
  await expect(persons.getByRole("rowheader")).toHaveText(["cy"]);

  await page.goto(`${insights}/new?kind=retention&target_event=tea+seen&returning_event=tea+paid&total=3`);
  await alive(page, scripts);
  await page.getByRole("link", { name: "66.7% (2)" }).click();
  await opened();
  await expect(page.getByText("Came back in Day 2")).toBeVisible();
  await expect(persons).toHaveCount(2);
  await page.goto(`${insights}/new?kind=stickiness`);
  await alive(page, scripts);
  const active = page.getByRole("table", { name: "Persons by their intervals" }).locator("tbody > tr");
  await active.last().getByRole("link", { name: "2", exact: true }).click();
  await opened();
  await expect(page.getByText("Active in 2 days")).toBeVisible();
  await expect(persons).toHaveCount(2);
  await page.goto(`${insights}/new?kind=lifecycle&event=tea+seen`);
  await alive(page, scripts);
  const statuses = page.getByRole("table", { name: "Persons of each status" }).locator("tbody > tr");
  await statuses.filter({ hasText: "New" }).getByRole("link", { name: "3" }).click();
  await opened();
  await expect(persons).toHaveCount(3);
  await persons.filter({ hasText: "cy" }).getByRole("link").click();
  await expect(page.getByRole("heading", { level: 1, name: "cy" })).toBeVisible();
  await alive(page, scripts);
});

test("a funnel of the API is shown in its form", async ({ page, server, scripts }) => {
  const { insights, key, project } = await furnished(page, server, scripts);
  const query = { kind: "FunnelsQuery", series: [{ event: "tea paid" }, { event: "tea drunk" }] };
  const saved = await call(server, key, "POST", `/api/projects/${project}/insights/`, { name: "From cup to cup", query });
  await page.goto(`${insights}/${saved.short_id}`);
  await alive(page, scripts);
  await expect(page.getByLabel("Step 2", { exact: true })).toHaveValue("tea drunk");
  await expect(page.getByRole("figure")).toContainText("0 of 2 persons did all steps: 0.0%.");
});
