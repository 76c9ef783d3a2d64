// The first five minutes: from the printed link to the first event on screen.

import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { promisify } from "node:util";
import { type Browser, type Page } from "@playwright/test";
import { alive, enter, expect, look, projectKey, send, setUp, shell, shot, terminal, test, visit } from "./helpers";

const run = promisify(execFile);

/** How each snippet is run as it is printed. */
const runners: Record<string, (snippet: string) => Promise<unknown>> = {
  curl: (snippet) => shell(snippet),
  HTTPie: (snippet) => terminal(snippet),
  Python: (snippet) => run("python3", ["-c", snippet]),
  JavaScript: (snippet) => run(process.execPath, ["--input-type=module", "-e", snippet]),
};

/** How each snippet begins. */
const beginnings: Record<string, string> = {
  curl: "curl -sS ",
  HTTPie: "http POST ",
  Python: "import json",
  JavaScript: "const answer = await fetch(",
  "Web site": "<script async ",
};

async function snippet(page: Page, legend: string, label: string): Promise<string> {
  const tabs = page.locator(".tabs", { has: page.getByRole("group", { name: legend, exact: true }) });
  let text = "";
  // Without scripts the page may reload itself between the two.
  await expect(async () => {
    await tabs.getByText(label, { exact: true }).click();
    text = (await tabs.locator("pre:visible").textContent()) ?? "";
    expect(text.startsWith(beginnings[label]!), text).toBe(true);
  }).toPass();
  return text;
}

test("a wrong link says how to print a new one", async ({ page, scripts }) => {
  await page.goto("/setup?token=wrong");
  await alive(page, scripts);
  await expect(page.getByText("weir setup-link")).toBeVisible();
  await page.goto("/login");
  await expect(page.getByText("This instance has no account yet")).toBeVisible();
});

test("a weak password is refused at the field, and the other input stays", async ({ page, server, scripts }) => {
  await page.goto(server.setupLink);
  await alive(page, scripts);
  await shot(page, "first-event-1-setup");
  await page.getByLabel("First name").fill("Ada");
  await page.getByLabel("E-mail address").fill("ada@weir.example");
  await page.getByLabel("Password", { exact: true }).fill("password1234");
  await page.getByLabel("Organization").fill("Kept");
  await page.getByRole("button", { name: "Set up Weir" }).click();
  const field = page.getByLabel("Password", { exact: true });
  await expect(field).toHaveAttribute("aria-invalid", "true");
  await expect(field).toHaveAccessibleDescription(/password/i);
  await expect(page.getByLabel("First name")).toHaveValue("Ada");
  await expect(page.getByLabel("E-mail address")).toHaveValue("ada@weir.example");
  await expect(page.getByLabel("Organization")).toHaveValue("Kept");
});

test("from the set-up link to the first event and a dropped event", async ({ page, server, scripts }) => {
  await setUp(page, server, scripts);
  await alive(page, scripts);
  await expect(page.getByText("Waiting for the first event")).toBeVisible();
  await expect(page.getByText(/^phc_\w+$/)).toBeVisible();
  await shot(page, "first-event-2-start");

  await shell(await snippet(page, "Language of the snippet", "curl"));
  // Without scripts the page reloads itself every five seconds.
  const arrived = page.getByRole("link", { name: "first event" });
  await expect(arrived).toBeVisible({ timeout: scripts ? 2_000 : 12_000 });
  await expect(page.getByText("Accepted").first()).toBeVisible();
  const whom = page.locator(".arrival").getByRole("link", { name: "me", exact: true });
  await expect(whom.first()).toHaveAttribute("href", /^\/projects\/\d+\/persons\/[0-9a-f-]+$/);
  await expect(page.getByRole("heading", { name: "Send an event (done)" })).toBeVisible();
  const seen = page.getByRole("heading", { name: /^Check that it arrives/ });
  await shot(page, "first-event-3-arrived", seen);

  await shell(await snippet(page, "Language of the snippet for a dropped event", "curl"));
  await look(page, scripts);
  await expect(page.getByText("No distinct_id.")).toBeVisible();
  await expect(page.getByText("Dropped").first()).toBeVisible();
  await expect(page.getByRole("heading", { name: "See a dropped event (done)" })).toBeVisible();
  await shot(page, "first-event-4-dropped", seen);
  await shot(page, "first-event-5-checklist", page.getByRole("heading", { name: "Next", exact: true }));
});

test("the detail of a dropped event shows reason, fix and payload", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await send(server, await projectKey(page), { event: "broken event" });
  await page.reload();
  await alive(page, scripts);
  await page.getByRole("link", { name: "broken event" }).first().click();
  await expect(page).toHaveURL(/\/events\?selected=/);
  const detail = page.getByRole("region", { name: "broken event" });
  await expect(detail.getByText("No distinct_id.")).toBeVisible();
  await expect(detail.getByText("that is not blank")).toBeVisible();
  await expect(detail.getByRole("figure", { name: "Payload as received" })).toContainText('"event": "broken event"');
  await detail.getByRole("link", { name: "Close" }).click();
  await expect(detail).toBeHidden();
});

for (const label of Object.keys(runners)) {
  test(`the ${label} snippets work as printed`, async ({ page, server, scripts }) => {
    await enter(page, server, scripts);
    await alive(page, scripts);
    const dropped = page.getByText("No distinct_id.");
    const before = { stored: await page.getByRole("link", { name: "first event" }).count(), dropped: await dropped.count() };
    await runners[label]!(await snippet(page, "Language of the snippet", label));
    await runners[label]!(await snippet(page, "Language of the snippet for a dropped event", label));
    await expect(async () => {
      await look(page, scripts);
      const now = { stored: await page.getByRole("link", { name: "first event" }).count(), dropped: await dropped.count() };
      // The list is short: others are pushed out of it once it is full.
      expect(now.stored + now.dropped).toBeGreaterThanOrEqual(Math.min(before.stored + before.dropped + 2, 8));
    }).toPass({ timeout: 10_000 });
  });
}

for (const [what, config, seen] of [
  ["the element of a web page works as printed", "", /^\$pageview$/],
  ["a web page that stores nothing in the browser has visitors", "cookieless_mode: 'always', ", /^cookieless_/],
] as const) {
  test(what, async ({ browser, page, server, scripts }) => {
    await enter(page, server, scripts);
    await alive(page, scripts);
    const element = await snippet(page, "Language of the snippet", "Web site");
    await visitSite(browser, element.replace("api_host", `${config}api_host`), async () => {
      await expect(async () => {
        await look(page, scripts);
        await expect(page.locator(".arrival").getByText(seen).first()).toBeVisible({ timeout: 1_000 });
      }).toPass();
    });
  });
}

/** Opens a page with this element in its head until `seen` is done. */
async function visitSite(browser: Browser, element: string, seen: () => Promise<void>): Promise<void> {
  const site = createServer((_request, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end(`<!doctype html><html lang="en"><head><title>Shop</title>${element}</head><body>Tea</body></html>`);
  });
  await new Promise<void>((listening) => site.listen(0, "127.0.0.1", listening));
  const context = await browser.newContext({ javaScriptEnabled: true });
  try {
    // The library drops events of automated browsers.
    await context.addInitScript(() => {
      for (const [name, value] of Object.entries({ userAgent: "Mozilla/5.0 Chrome/140.0", userAgentData: undefined, webdriver: false })) {
        Object.defineProperty(navigator, name, { get: () => value });
      }
    });
    const visited = await context.newPage();
    await visited.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
    await seen();
  } finally {
    await context.close();
    site.close();
  }
}

test("the link works once", async ({ page, server, scripts }) => {
  await visit(page, server, scripts);
  const answer = await page.goto(server.setupLink);
  expect(answer?.status()).toBe(404);
});
