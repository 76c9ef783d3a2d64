// Batch exports, from the first one to its end: to a receiver of each test, which
// refuses events until the test lets it accept them.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "@playwright/test";
import { startServer } from "../server";
import {
  alive,
  apiKey,
  call,
  checkPage,
  enter,
  expect,
  newOrganization,
  openAdvanced,
  openMenu,
  type Organization,
  send,
  type Server,
  shell,
  test as base,
} from "./helpers";

interface Receiver {
  url: string;
  /** Whether it accepts events. If not, it refuses the key. */
  accepts: boolean;
  /** The bodies that it has accepted. */
  received: string[];
}

// The receiver is on this machine, which Weir reaches only where it is allowed to.
const test = base.extend<{ receiver: Receiver }, { reaching: Server }>({
  reaching: [
    async ({}, use) => {
      const server = await startServer({ args: ["--egress-allow", "127.0.0.1"] });
      await use(server);
      await server.stop();
    },
    { scope: "worker" },
  ],
  server: async ({ reaching }, use) => use(reaching),
  receiver: async ({}, use) => {
    const receiver: Receiver = { url: "", accepts: false, received: [] };
    const http = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk) => (body += chunk));
      request.on("end", () => {
        if (receiver.accepts) receiver.received.push(body);
        response.writeHead(receiver.accepts ? 200 : 401, { "Content-Type": "application/json" });
        response.end("{}");
      });
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    receiver.url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/batch/`;
    await use(receiver);
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  },
});

const NAME = "Copy of events";
const HOUR = 60 * 60 * 1000;
/** The key of the project at the receiver, which is a secret. */
const SECRET = "phc_canary";

/** An organization of a test alone, and the address of its exports. */
interface Home extends Organization {
  key: string;
  list: string;
}

/** An export of it, and its address in the app and the API. */
interface Export extends Home {
  one: string;
  api: string;
}

async function home(page: Page, server: Server, scripts: boolean): Promise<Home> {
  const key = await apiKey(page, server, scripts);
  const organization = await newOrganization(server, key);
  return { ...organization, key, list: `/organizations/${organization.id}/exports` };
}

/** Creates an export to the receiver. */
async function newExport(page: Page, server: Server, scripts: boolean, receiver: Receiver): Promise<Export> {
  const made = await home(page, server, scripts);
  const root = `/api/organizations/${made.id}/batch_exports/`;
  const { id } = await call(server, made.key, "POST", root, {
    name: NAME,
    interval: "day",
    model: "events",
    destination: { type: "HTTP", config: { url: receiver.url, token: SECRET, include_events: ["paid"] } },
  });
  return { ...made, one: `${made.list}/${id}`, api: `${root}${id}/` };
}

/** Sends an event of two hours ago, and waits until it can be read. */
async function pay(server: Server, { key, project, token }: Home): Promise<void> {
  const timestamp = new Date(Date.now() - 2 * HOUR).toISOString();
  await send(server, token, { event: "paid", distinct_id: "ada", timestamp, properties: { amount: 12 } });
  await expect(async () => {
    expect((await call(server, key, "GET", `/api/projects/${project}/events/?event=paid`)).results).toHaveLength(1);
  }).toPass();
}

/** The export of each server that has a run that failed. Tests only read it. */
const failing = new WeakMap<Server, Export>();

/** Creates an export and lets a run of it fail, once per server. */
async function failedRun(page: Page, server: Server, scripts: boolean, receiver: Receiver): Promise<Export> {
  const kept = failing.get(server);
  if (kept) {
    await enter(page, server, scripts);
    return kept;
  }
  const made = await newExport(page, server, scripts, receiver);
  await pay(server, made);
  const range = { start_at: "2020-01-01T00:00:00Z", end_at: new Date().toISOString() };
  await call(server, made.key, "POST", `${made.api}backfills/`, range);
  const failed = async () => (await call(server, made.key, "GET", `${made.api}runs/?status=Failed`)).results.length;
  await expect.poll(failed, { timeout: 60_000 }).toBeGreaterThan(0);
  failing.set(server, made);
  return made;
}

/** Loads the page again until what is wanted is there. */
async function comes(page: Page, wanted: () => Promise<void>): Promise<void> {
  await expect(async () => {
    await page.reload();
    await wanted();
  }).toPass({ timeout: 60_000 });
}

test("a first export, with a connection that is tested", async ({ page, server, scripts, receiver }) => {
  const { list } = await home(page, server, scripts);
  await page.goto(list);
  await alive(page, scripts);
  await expect(page.getByRole("heading", { name: "No export yet" })).toBeVisible();
  await checkPage(page, "no export");
  await page.getByRole("link", { name: "Create export" }).click();
  await alive(page, scripts);
  await page.getByRole("radio", { name: /^HTTP/ }).check();
  await checkPage(page, "destinations");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL("**/exports/new?destination=HTTP");
  await alive(page, scripts);

  await page.getByLabel("Name", { exact: true }).fill(NAME);
  await page.getByLabel("Interval").selectOption("day");
  await page.getByLabel("Address", { exact: true }).fill(receiver.url);
  const token = page.getByLabel("Project key at the receiver", { exact: true });
  await token.fill(SECRET);
  await openAdvanced(page);
  await page.getByLabel("Only these events").fill("paid\nsigned up");
  await page.getByRole("button", { name: "Test connection" }).click();

  await expect(page.getByText("The connection does not work yet.")).toBeVisible();
  await expect(page.getByText(/^TokenRefused: /)).toBeVisible();
  await expect(page.getByText("What to check")).toBeVisible();
  await checkPage(page, "a connection that does not work");
  // What was typed is still there; the secret is too, but not on the page.
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue(NAME);
  await expect(page.getByLabel("Interval")).toHaveValue("day");
  await expect(page.getByLabel("Only these events")).toHaveValue("paid\nsigned up");
  await expect(token).toHaveValue("");
  await expect(token).toHaveAccessibleDescription(/One is set\./);
  expect(await page.content()).not.toContain(SECRET);

  receiver.accepts = true;
  await alive(page, scripts);
  await page.getByRole("button", { name: "Test connection" }).click();
  await expect(page.getByText("The connection works.", { exact: false })).toBeVisible();
  expect(receiver.received.at(-1)).toContain(SECRET);

  await alive(page, scripts);
  await page.getByRole("button", { name: "Create export" }).click();
  await page.waitForURL(/\/exports\/[0-9a-f-]{36}$/);
  await expect(page.getByRole("heading", { level: 1, name: NAME })).toBeVisible();
  await expect(page.getByRole("heading", { name: "No run yet" })).toBeVisible();
});

test("a fault is shown at its field", async ({ page, server, scripts }) => {
  const { list } = await home(page, server, scripts);
  await page.goto(`${list}/new?destination=S3`);
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("Files");
  await page.getByLabel("Bucket", { exact: true }).fill("events");
  await page.getByLabel("Region", { exact: true }).fill("eu-central-1");
  await page.getByLabel("Prefix", { exact: true }).fill("weir");
  await openAdvanced(page);
  await page.getByLabel("Compression").selectOption("zstd");
  await page.getByRole("button", { name: "Create export" }).click();
  const compression = page.getByLabel("Compression");
  // The rarely used fields are open, because one of them has a fault.
  await expect(compression).toHaveAttribute("aria-invalid", "true");
  await expect(compression).toBeVisible();
  await expect(page.getByRole("alert").getByRole("link", { name: "Compression" })).toBeVisible();
  await expect(page.getByLabel("Bucket", { exact: true })).toHaveValue("events");
  await checkPage(page, "a form with a fault");
  await compression.selectOption("");
  await page.getByLabel("Query").fill("SELECT nothing FROM events");
  await alive(page, scripts);
  await page.getByRole("button", { name: "Create export" }).click();
  await expect(page.getByLabel("Query")).toHaveAccessibleDescription(/line 1, column \d+/);
});

test("the printed API requests do the same as the form", async ({ page, server, scripts }) => {
  test.skip(!scripts, "without scripts the fields stay blanks");
  const { list, key } = await home(page, server, scripts);
  const form = page.locator("form", { has: page.getByLabel("Query") });
  const request = form.locator("details.api-request").first();
  const asPrinted = async () => {
    const command = (await request.locator("pre code").textContent()) ?? "";
    return JSON.parse(await shell(`export WEIR_API_KEY='${key}'; ${command} -sSf`));
  };
  await page.goto(`${list}/new?destination=S3`);
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("Ada's files");
  await page.getByLabel("Bucket", { exact: true }).fill("events");
  await page.getByLabel("Region", { exact: true }).fill("eu-central-1");
  await page.getByLabel("Prefix", { exact: true }).fill("weir/it's");
  await openAdvanced(page);
  await page.getByLabel("Only these events").fill("paid\n\n signed up ");
  await page.getByLabel("Not before (UTC)").fill("2026-01-02T03:04");
  await page.getByLabel("Query").fill("SELECT event FROM events WHERE event = 'paid'");
  const made = await asPrinted();
  expect(made).toMatchObject({
    name: "Ada's files",
    start_at: "2026-01-02T03:04:00Z",
    end_at: null,
    hogql_query: "SELECT event FROM events WHERE event = 'paid'",
  });
  expect(made.destination.config).toMatchObject({
    bucket_name: "events",
    prefix: "weir/it's",
    include_events: ["paid", "signed up"],
    exclude_events: null,
    compression: null,
  });

  await page.goto(`${list}/${made.id}/settings`);
  await alive(page, scripts);
  await openAdvanced(page);
  await page.getByLabel("Query").fill("");
  await page.getByLabel("Only these events").fill("");
  const changed = await asPrinted();
  expect(changed).toMatchObject({ start_at: "2026-01-02T03:04:00Z", hogql_query: null });
  expect(changed.destination.config.include_events).toBeNull();
});

test("pause and undo", async ({ page, server, scripts, receiver }) => {
  const { list } = await newExport(page, server, scripts, receiver);
  // With `paused` the page does not reload itself.
  await page.goto(`${list}?paused=1`);
  await alive(page, scripts);
  const row = page.getByRole("row").filter({ hasText: NAME });
  await expect(row.getByText("Active", { exact: true })).toBeVisible();
  await checkPage(page, "the list of exports");
  await openMenu(page, NAME);
  await row.getByRole("button", { name: `Pause ${NAME}` }).click();
  await expect(row.getByText("Paused", { exact: true }).first()).toBeVisible();
  await alive(page, scripts);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(row.getByText("Active", { exact: true })).toBeVisible();

  await page.goto(`${list}?state=failing&name=copy`);
  await alive(page, scripts);
  await expect(page.getByLabel("State")).toHaveValue("failing");
  await expect(page.getByText('name with "copy", Failing')).toBeVisible();
  await page.getByRole("link", { name: "Clear filters" }).click();
  await expect(row).toBeVisible();
});

test("a backfill fails with a cause and is run again", async ({ page, server, scripts, receiver }) => {
  // Runs start on a schedule, and the test waits for several of them.
  test.setTimeout(300_000);
  const made = await newExport(page, server, scripts, receiver);
  const { list, one } = made;
  await pay(server, made);
  await page.goto(`${one}/backfill`);
  await alive(page, scripts);
  await page.getByLabel("From (UTC)").fill("2020-01-01T00:00");
  await page.getByLabel("Up to (UTC)").fill(new Date().toISOString().slice(0, 16));
  await page.getByRole("button", { name: "Preview backfill" }).click();
  await page.waitForURL("**look=1**");
  await expect(page.locator(".export-count")).toHaveText(/^[12] runs?, about 1 event$/);
  await expect(page.getByText("The range begins before the first event")).toBeVisible();
  await checkPage(page, "a backfill preview");

  await alive(page, scripts);
  await page.getByRole("button", { name: /^Schedule [12] runs?$/ }).click();
  await page.waitForURL(`**${one}/backfill`);
  await expect(page.getByRole("row").filter({ hasText: " to " }).first()).toBeVisible();

  await page.goto(one);
  const failed = page.getByRole("row").filter({ hasText: "TokenRefused" });
  await comes(page, () => expect(failed.first()).toBeVisible({ timeout: 2_000 }));
  await page.goto(`${one}?paused=1`);
  await alive(page, scripts);
  await failed.first().getByText("Details").click();
  await expect(failed.first().getByText("What to check")).toBeVisible();
  await checkPage(page, "a run that failed");
  await page.goto(list);
  const row = page.getByRole("row").filter({ hasText: NAME });
  await expect(row.getByText("Failing", { exact: true })).toBeVisible();
  await expect(row.getByText(/^Failing since/)).toBeVisible();
  await expect(row.getByText(/^TokenRefused/)).toBeVisible();

  receiver.accepts = true;
  await page.goto(one);
  await alive(page, scripts);
  await failed.first().getByRole("button", { name: /^Run again/ }).click();
  await expect(page.getByText("exports this interval once more", { exact: false })).toBeVisible();
  const done = page.getByRole("row").filter({ hasText: "Completed" });
  await comes(page, () => expect(done.filter({ hasText: "1 / 1" }).first()).toBeVisible({ timeout: 2_000 }));
  expect(receiver.received.join()).toContain('"paid"');

  await page.goto(`${one}?state=failed`);
  await expect(failed.first()).toBeVisible();
  await expect(done).toHaveCount(0);
});

test("details stay open while the list is kept fresh", async ({ page, server, scripts, receiver }) => {
  test.skip(!scripts, "without scripts the whole page is loaded again");
  const { one } = await failedRun(page, server, scripts, receiver);
  await page.clock.install();
  await page.goto(one);
  await alive(page, scripts);
  const runs = page.locator("#runs");
  const details = runs.locator("details.export-more").first();
  await details.getByText("Details").click();
  const updated = async () => {
    const answered = page.waitForResponse((answer) => answer.url().includes("/_fn/"));
    await page.clock.runFor(31_000);
    await answered;
  };
  await updated();
  await expect(details).toHaveAttribute("open");
  await expect(details.locator("> summary")).toBeFocused();
  await details.locator("a, button").first().focus();
  await updated();
  await expect(details).toHaveAttribute("open");
  await expect(details.locator("a, button").first()).toBeFocused();
});

test("a mark of the strip links to its run", async ({ page, server, scripts, receiver }) => {
  const { list, one } = await failedRun(page, server, scripts, receiver);
  await page.goto(list);
  await alive(page, scripts);
  const mark = page.getByRole("row").filter({ hasText: NAME }).locator('a[href*="#run-"]').first();
  const run = (await mark.getAttribute("href"))!.split("#")[1];
  await mark.click();
  await page.waitForURL(`**?after=*#${run}`);
  await expect(page.locator(`#${run}`)).toBeVisible();

  await page.goto(`${one}?state=cancelled`);
  await alive(page, scripts);
  await expect(page.getByRole("heading", { name: "No matching run in the last 7 days" })).toBeVisible();
  await checkPage(page, "no run of a filter");
  await page.getByRole("link", { name: "Show runs of all days" }).click();
  await expect(page.getByText("Nothing matches the filter")).toBeVisible();
});

test("the log of a run", async ({ page, server, scripts, receiver }) => {
  const { one } = await failedRun(page, server, scripts, receiver);
  await page.goto(`${one}/logs?level=ERROR&paused=1`);
  await alive(page, scripts);
  await expect(page.getByRole("row").filter({ hasText: "Error" }).first()).toBeVisible();
  await checkPage(page, "the log of an export");
  await page.goto(`${one}/logs?text=nothing+says+this`);
  await expect(page.getByText('text with "nothing says this"')).toBeVisible();
});

test("settings are saved, and the secret stays", async ({ page, server, scripts, receiver }) => {
  const { one } = await newExport(page, server, scripts, receiver);
  receiver.accepts = true;
  await page.goto(`${one}/settings`);
  await alive(page, scripts);
  await expect(page.getByLabel("Project key at the receiver", { exact: true })).toHaveValue("");
  await page.getByLabel("Name", { exact: true }).fill("Copy");
  await openAdvanced(page);
  await page.getByLabel("Only these events").fill("paid\nsigned up");
  await page.getByRole("button", { name: "Save settings" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Copy", exact: true })).toBeVisible();
  await expect(page.getByLabel("Only these events")).toHaveValue("paid\nsigned up");
  await alive(page, scripts);
  // The secret is not entered again.
  await page.getByRole("button", { name: "Test connection" }).click();
  await expect(page.getByText("The connection works.", { exact: false })).toBeVisible();
  expect(receiver.received.at(-1)).toContain(SECRET);

  // Another host must not get it.
  await alive(page, scripts);
  await page.getByLabel("Address", { exact: true }).fill("http://elsewhere.example/batch/");
  await page.getByRole("button", { name: "Save settings" }).click();
  const token = page.getByLabel("Project key at the receiver", { exact: true });
  await expect(token).toHaveAccessibleDescription(/Send this secret again\./);
  await checkPage(page, "settings of an export");
});

test("weeks begin on a day, at an hour of a time zone", async ({ page, server, scripts, receiver }) => {
  const { one } = await newExport(page, server, scripts, receiver);
  await page.goto(`${one}/settings`);
  await alive(page, scripts);
  await openAdvanced(page);
  await expect(page.getByLabel("Weeks begin on")).toBeHidden();
  await page.getByLabel("Interval").selectOption("Every week");
  await page.getByLabel("Weeks begin on").selectOption("Friday");
  await page.getByLabel("Days begin at").selectOption("09:00");
  await page.getByLabel("Time zone").fill("Europe/Nowhere");
  await page.getByRole("button", { name: "Save settings" }).click();
  await expect(page.getByLabel("Time zone")).toHaveAccessibleDescription(/Enter a time zone by its IANA name/);
  await expect(page.getByLabel("Weeks begin on")).toHaveValue("5");
  await alive(page, scripts);
  await page.getByLabel("Time zone").fill("Europe/Berlin");
  await page.getByRole("button", { name: "Save settings" }).click();
  await expect(page.getByText("Every Friday at 09:00 Europe/Berlin")).toBeVisible();
  // An hour begins at none: what was chosen before goes.
  await alive(page, scripts);
  await page.getByLabel("Interval").selectOption("Every hour");
  await page.getByRole("button", { name: "Save settings" }).click();
  await expect(page.getByText("Every hour", { exact: true }).first()).toBeVisible();
  await expect(page.getByLabel("Days begin at")).toHaveValue("");
});

test("delete by typing the name", async ({ page, server, scripts, receiver }) => {
  const { list, one } = await newExport(page, server, scripts, receiver);
  await page.goto(`${one}/settings`);
  await alive(page, scripts);
  await expect(page.getByText("Delivered rows stay at the destination", { exact: false })).toBeVisible();
  await page.getByLabel("Name of the export").fill(NAME);
  await page.getByRole("button", { name: "Delete export" }).click();
  await page.waitForURL(`**${list}`);
  await expect(page.getByRole("heading", { name: "No export yet" })).toBeVisible();
  expect((await page.goto(one))?.status()).toBe(404);
});
