// A month of a tea shop on the pages of questions, with the pictures of the guide.

import type { Page } from "@playwright/test";
import { alive, apiKey, call, expect, newOrganization, type Server, shot, test } from "./helpers";

const DAYS = 28;
const PERSONS = 40;
const MINUTE = 60 * 1000;
const DAY = 24 * 60 * MINUTE;
const STEPS = ["tea seen", "basket filled", "tea paid"];
const RANGE = { date_from: "-30d" };

interface Sent {
  event: string;
  distinct_id: string;
  timestamp: string;
  properties: { plan: string; price: number };
}

/** The events of a month: later days have more guests, some of whom fill a basket and pay. */
function month(now: number): Sent[] {
  const sent: Sent[] = [];
  for (let ago = DAYS - 1; ago >= 0; ago -= 1) {
    const guests = PERSONS - Math.floor((PERSONS * ago) / (DAYS * 1.5));
    for (let guest = 0; guest < guests; guest += 1) {
      if ((guest * 7 + ago * 11) % (3 + (guest % 4)) !== 0) continue;
      const mood = (guest * 5 + ago * 3) % 7;
      const steps = mood < 3 ? 3 : mood < 5 ? 2 : 1;
      STEPS.slice(0, steps).forEach((event, step) => {
        sent.push({
          event,
          distinct_id: `guest-${guest}`,
          timestamp: new Date(now - ago * DAY - (40 - 10 * step) * MINUTE).toISOString(),
          properties: { plan: guest % 3 === 0 ? "pro" : "free", price: 2 + (guest % 5) },
        });
      });
    }
  }
  return sent;
}

/** A project with these events. Returns the key of the API, and the number of the project. */
async function furnished(page: Page, server: Server, events: Sent[]): Promise<{ key: string; project: number }> {
  const key = await apiKey(page, server, true);
  const { project, token } = await newOrganization(server, key, "Tea Shop");
  const body = JSON.stringify({ api_key: token, batch: events });
  const headers = { "Content-Type": "application/json" };
  expect((await fetch(`${server.url}/batch/`, { method: "POST", headers, body })).status).toBe(200);
  const query = { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: null }], dateRange: RANGE };
  await expect(async () => {
    const asked = { query, refresh: "force_blocking" };
    const { results } = await call(server, key, "POST", `/api/projects/${project}/query/`, asked);
    expect(results[0].count).toBe(events.length);
  }).toPass();
  return { key, project };
}

test("a month of events is charted by trends, a funnel and retention", async ({ page, server }) => {
  const events = month(Date.now());
  const { project } = await furnished(page, server, events);
  const paid = (plan: string) => events.filter((sent) => sent.event === "tea paid" && sent.properties.plan === plan).length;
  const ask = async (fields: Record<string, string>): Promise<void> => {
    await page.goto(`/projects/${project}/insights/new?${new URLSearchParams(fields)}`);
    await alive(page, true);
  };
  const figure = page.getByRole("figure");

  await ask({ event: "tea paid", breakdown: "plan", range: "-30d" });
  const series = page.getByRole("table", { name: "Numbers of the whole range" }).locator("tbody > tr");
  await expect(series).toHaveCount(2);
  for (const plan of ["pro", "free"]) {
    await expect(series.filter({ hasText: plan }).getByRole("cell").first()).toHaveText(String(paid(plan)));
  }
  await shot(page, "insight-trend");

  await ask({ kind: "funnel", step1: STEPS[0], step2: STEPS[1], step3: STEPS[2], range: "-30d" });
  await expect(figure).toContainText("persons did all steps");
  await shot(page, "insight-funnel", figure);

  await ask({ kind: "retention", target_event: STEPS[0], returning_event: STEPS[0], period: "Week", total: "5" });
  const cohorts = page.getByRole("table", { name: "Persons who came back" });
  // All cohorts together, and one for each week.
  await expect(cohorts.locator("tbody > tr")).toHaveCount(6);
  await shot(page, "insight-retention", cohorts);
});

test("a dashboard and its share link show a month of events", async ({ page, server }) => {
  const { key, project } = await furnished(page, server, month(Date.now()));
  const api = `/api/projects/${project}`;
  const breakdownFilter = { breakdown: "plan", breakdown_type: "event" };
  const entity = { type: "events", id: STEPS[0] };
  const retentionFilter = { period: "Week", totalIntervals: 5, targetEntity: entity, returningEntity: entity };
  const questions: [string, object][] = [
    ["Payments by plan", { kind: "TrendsQuery", series: [{ event: "tea paid" }], dateRange: RANGE, breakdownFilter }],
    ["Guests per day", { kind: "TrendsQuery", series: [{ event: "tea seen", math: "dau" }], dateRange: RANGE }],
    ["From tea to payment", { kind: "FunnelsQuery", series: STEPS.map((event) => ({ event })), dateRange: RANGE }],
    ["Guests who come back", { kind: "RetentionQuery", retentionFilter }],
  ];
  const tiles: object[] = [];
  for (const [name, query] of questions) {
    const insight = await call(server, key, "POST", `${api}/insights/`, { name, query });
    tiles.push({ insight: insight.id });
  }
  const text = { name: "Tea shop", description: "What we read on Mondays" };
  const { id } = await call(server, key, "POST", `${api}/dashboards/`, text);
  await call(server, key, "PATCH", `${api}/dashboards/${id}/`, { tiles });
  const { token } = await call(server, key, "POST", `${api}/dashboards/${id}/share_links/`, { expires_in_days: 7 });

  for (const [address, picture] of [
    [`/projects/${project}/dashboards/${id}`, "dashboard"],
    [`/shared/${token}`, "dashboard-shared"],
  ] as const) {
    await page.goto(address);
    await alive(page, true);
    await expect(page.getByRole("heading", { level: 1, name: "Tea shop" })).toBeVisible();
    for (const [name] of questions) {
      const tile = page.getByRole("region", { name, exact: true });
      await expect(tile.getByRole("table", { name: `Numbers of ${name}` })).toBeVisible();
    }
    await shot(page, picture);
  }
});
