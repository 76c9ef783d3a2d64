// Pictures of every page and state, in both themes, wide and narrow, for review:
//
//   WEIR_SCREENS=test-results/screens npx playwright test --project screens
//
// Not part of the checks: nothing is compared.

import { shot, shotOfRefusal, visit } from "../screens";
import { alive, call, enter, expect, furnish, join, newKey, projectKey, send, test, UNKNOWN_ID } from "./helpers";

test.describe.configure({ mode: "serial" });

test("before the sign-in", async ({ page, server }) => {
  test.setTimeout(180_000);
  await visit(page, "/login", "login-no-account");
  await visit(page, "/setup?token=x", "setup-void");
  await visit(page, "/nowhere", "nothing");
  await visit(page, server.setupLink, "setup");
  await page.getByLabel("First name").fill("Ada");
  await page.getByLabel("E-mail address").fill("ada@weir.example");
  await page.getByLabel("Password", { exact: true }).fill("password1234");
  await page.getByRole("button", { name: "Set up Weir" }).click();
  await shotOfRefusal(page, "setup-refused");
});

test("pages", async ({ page, server }) => {
  test.setTimeout(300_000);
  await enter(page, server, true);
  await expect(page.getByText("Waiting for the first event")).toBeVisible();
  await shot(page, "start-empty");
  const key = await projectKey(page);
  await visit(page, "/projects/1/events", "events-empty");
  await visit(page, "/projects/1/health", "health-empty");
  await visit(page, "/account/keys", "keys-empty");

  for (const [event, distinct_id, extra] of [
    ["signed up", "ada", { $current_url: "https://shop.example/welcome", plan: "pro", $lib: "web" }],
    ["page viewed", "ada", { $current_url: "https://shop.example/", $lib: "web" }],
    ["page viewed", "018f2b7c-5a0e-7c1d-9a51-2f6c3f6d1b11", { $current_url: "https://shop.example/prices?from=letter", $lib: "web" }],
    ["plan chosen", "ada", { $current_url: "https://shop.example/prices", plan: "pro", seats: 12, $lib: "web" }],
    ["invoice sent", "acme-gmbh", { $lib: "posthog-python", amount: 120.5, currency: "EUR" }],
    ["order placed", "grace", { $screen_name: "Checkout", $lib: "posthog-ios", items: 3 }],
  ] as const) {
    await send(server, key, { event, distinct_id, properties: extra });
  }
  await send(server, key, { event: "order placed", properties: { $lib: "posthog-ios" } });
  await send(server, key, { event: "averylongnamewithoutanyspaceinit".repeat(4), distinct_id: "averylongnamewithoutanyspaceinit".repeat(4) });
  await send(server, key, { distinct_id: "nameless" });
  await send(server, key, { event: "newsletter opened", distinct_id: "ada", properties: { $lib: "node" } });

  await visit(page, "/projects/1/start", "start");
  await visit(page, "/projects/1", "overview");
  await page.goto("/projects/1/events");
  await alive(page, true);
  await expect(page.locator(".status-live")).toBeVisible();
  await shot(page, "events");
  await page.locator(".row-link", { hasText: "order placed" }).first().click();
  await shot(page, "events-dropped");
  await page.keyboard.press("Escape");
  await page.locator(".row-link", { hasText: "plan chosen" }).click();
  await shot(page, "events-open");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Space");
  await send(server, key, { event: "while paused", distinct_id: "ada" });
  await expect(page.getByRole("button", { name: "Resume (1 new)" })).toBeVisible();
  await shot(page, "events-paused");
  await visit(page, "/projects/1/events?event=nothing", "events-no-match");
  await visit(page, "/projects/1/events?selected=gone", "events-not-kept");
  await page.route("**/_live/**", (route) => route.abort());
  await page.goto("/projects/1/events");
  await expect(page.getByText("The connection is lost.")).toBeVisible();
  await shot(page, "events-lost");
  await page.unroute("**/_live/**");

  await visit(page, "/projects/1/health", "health");
  await page.getByText("Latest sample").first().click();
  await shot(page, "health-sample");

  await visit(page, "/projects/1/settings", "project");
  await page.getByLabel("Time zone").fill("nowhere");
  await page.getByRole("button", { name: "Save settings" }).click();
  await shotOfRefusal(page, "project-refused");
  await page.getByLabel("Time zone").fill("Europe/Berlin");
  await page.getByRole("button", { name: "Save settings" }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  await shot(page, "project-saved");
  await page.locator(".switch > summary").click();
  await shot(page, "menu-projects");

  await visit(page, "/organizations", "organizations");
  await page.locator(".account > summary").click();
  await shot(page, "menu-account");
  await visit(page, "/organizations/new", "organization-new");
  await page.getByLabel("Name").fill("  ");
  await page.getByRole("button", { name: "Create organization" }).click();
  await shotOfRefusal(page, "organization-new-refused");
  await page.goto("/organizations");
  await page.locator(".organization-head a").first().click();
  await expect(page.getByRole("heading", { name: "Organization settings" })).toBeVisible();
  await shot(page, "organization");

  await visit(page, "/account", "account");
  await visit(page, "/account/security", "security");
  await visit(page, "/account/keys/new", "key-new");
  await page.getByLabel("Custom").check();
  await shot(page, "key-new-custom");
  await page.getByLabel("Label").fill("Nothing");
  await page.getByRole("button", { name: "Create key" }).click();
  await shotOfRefusal(page, "key-new-refused");
  await page.getByLabel("Read-only").check();
  await page.getByLabel("Label").fill("Nightly report");
  await page.getByRole("button", { name: "Create key" }).click();
  await expect(page.getByRole("navigation", { name: "Breadcrumb" })).toContainText("Your new key");
  await shot(page, "key-reveal");
  await visit(page, "/account/keys/reveal", "key-reveal-gone");
  await visit(page, "/account/keys", "keys");
  await page.locator(".row-menu > summary").first().click();
  await page.getByRole("button", { name: "Revoke..." }).click();
  await shot(page, "keys-revoke");

  await visit(page, "/login/again?next=/account", "login-again");
  await visit(page, "/projects/999/events", "project-nothing");
  await page.context().clearCookies();
  await visit(page, "/login", "login");
  await page.getByLabel("E-mail address").fill("ada@weir.example");
  await page.getByLabel("Password", { exact: true }).fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await shotOfRefusal(page, "login-refused");
});

test("the other pages", async ({ page, server }) => {
  test.setTimeout(400_000);
  await enter(page, server, true);
  await page.goto("/projects/1/start");
  const token = await projectKey(page);
  const api = await newKey(page, true, "Pictures");
  const made = await furnish(server, api, token);
  for (const name of ["Grace", "Linus", "Barbara"]) {
    await join(server, api, made.organization!, { name, email: `${name.toLowerCase()}@weir.example`, password: "nine slow otters in a barn" });
  }
  const root = `/organizations/${made.organization}`;
  await call(server, api, "PATCH", `/api/instance${root}/limits/`, {
    events_per_month_limit: 3,
    events_per_month_action: "drop",
    members_limit: 5,
    members_action: "reject",
  });
  for (const [name, path] of [
    ["organization-limited", root],
    ["members", `${root}/members`],
    ["invites", `${root}/invites`],
    ["domains", `${root}/domains`],
    ["domain", `${root}/domains/${made.domain}`],
    ["domain-token-gone", `${root}/domains/${made.domain}/token`],
    ["activity", `${root}/activity`],
    ["exports", `${root}/exports`],
    ["export-new", `${root}/exports/new`],
    ["export-new-s3", `${root}/exports/new?destination=S3`],
    ["export-runs", `${root}/exports/${made.exported}`],
    ["export-backfill", `${root}/exports/${made.exported}/backfill`],
    ["export-settings", `${root}/exports/${made.exported}/settings`],
    ["export-logs", `${root}/exports/${made.exported}/logs`],
    ["plugins", `${root}/plugins/destinations`],
    ["plugin", `${root}/plugins/destinations/${made.plugin}`],
    ["plugin-add", `${root}/plugins/destinations/add`],
    ["plugin-use", `/projects/1/plugins/new?plugin=${made.plugin}`],
    ["plugin-source", `${root}/plugins/destinations/${made.written}/source`],
    ["transformations", "/projects/1/transformations"],
    ["transformation-new", "/projects/1/transformations/new"],
    ["transformation", `/projects/1/transformations/${made.config}`],
    ["transformations-try", "/projects/1/transformations/try"],
    ["persons", "/projects/1/persons"],
    ["person", `/projects/1/persons/${made.person}`],
    ["groups-all", "/projects/1/groups"],
    ["groups", "/projects/1/groups/company"],
    ["group", "/projects/1/groups/company/acme"],
    ["event-definitions", "/projects/1/definitions"],
    ["event-definition", "/projects/1/definitions/page%20viewed"],
    ["migrations", "/projects/1/migrations"],
    ["affected-events", "/projects/1/health/events"],
    ["project-keys", "/projects/1/settings/keys"],
    ["project-new", `${root}/projects/new`],
    ["two-step", "/account/security/two-step"],
    ["recovery-codes", "/account/security/codes"],
    ["preferences", "/account/preferences"],
    ["messages", "/account/messages"],
    ["help", "/help"],
    ["help-page", "/help/sign-in"],
    ["search", "/search?q=a"],
    ["instance", "/instance"],
    ["instance-organizations", "/instance/organizations"],
    ["instance-limits", `/instance${root}`],
    ["gallery", "/gallery"],
  ] as const) {
    await visit(page, path, name);
  }
  await page.goto("/account/keys");
  await page.locator("li.key h2 a", { hasText: "Pictures" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Pictures" })).toBeVisible();
  await shot(page, "key");

  await page.goto(`/projects/1/persons/${made.person}`);
  await alive(page, true);
  await page.locator("summary", { hasText: "Delete person" }).click();
  await page.getByLabel("Delete its events too").check();
  await shot(page, "person-delete");
  await page.getByRole("button", { name: "Delete the person" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Deleted person" })).toBeVisible();
  await shot(page, "person-deleted");

  await page.context().clearCookies();
  for (const [name, path] of [
    ["signup", `/signup/${made.invite}`],
    ["signup-void", "/signup/x"],
    ["confirm-void", `/verify_email/${UNKNOWN_ID}`],
    ["reset", "/reset"],
    ["reset-new", `/reset/${UNKNOWN_ID}?token=x`],
    ["login-link", `/login/link/${UNKNOWN_ID}?token=x`],
  ] as const) {
    await visit(page, path, name);
  }
});
