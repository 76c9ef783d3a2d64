// What is around every page: the rail, the breadcrumb, search, preferences, messages, help, the instance.

import { alive, apiKey, call, checkPage, enter, expect, newKey, newOrganization, person, save, send, signIn, test, visit } from "./helpers";

test("the navigation stays in the organization and project of the page", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const main = page.getByRole("navigation", { name: "Main" });
  await expect(main.getByRole("link")).toHaveText([
    "Overview",
    "Events",
    "Web",
    "Insights",
    "Persons",
    "Groups",
    "Health",
    "Project settings",
    "Event definitions",
    "Transformations",
    "Exports",
    "Plugins",
    "Migrations",
    "Members",
    "Activity",
    "Settings",
  ]);
  await expect(main.getByRole("group", { name: "Data" }).getByRole("link")).toHaveCount(5);
  await expect(page.locator(".switch-organization")).toHaveText(person.organization);
  await expect(page.locator(".switch-project")).toHaveText(person.project);

  const key = await newKey(page, scripts, "frame");
  const other = await call(server, key, "POST", "/api/organizations/", { name: "Second Shop" });
  await page.goto(`/organizations/${other.id}`);
  await expect(page.locator(".switch-organization")).toHaveText("Second Shop");
  await expect(main.getByRole("link", { name: "Exports" })).toHaveAttribute("href", `/organizations/${other.id}/exports`);
  await expect(main.getByRole("link", { name: "Events" })).toHaveAttribute("href", `/projects/${other.teams[0].id}/events`);
  await page.locator("details.switch > summary").click();
  const create = page.locator("details.switch").getByRole("link", { name: "New project" });
  await expect(create).toHaveAttribute("href", `/organizations/${other.id}/projects/new`);
  await page.goto("/projects/1/health");
  await expect(page.locator(".switch-organization")).toHaveText(person.organization);
  await expect(main.locator("[aria-current=page]")).toHaveText("Health");
});

test("the breadcrumb leads back to what the page belongs to", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/projects/1/settings/keys");
  await alive(page, scripts);
  const crumbs = page.getByRole("navigation", { name: "Breadcrumb" });
  await expect(crumbs.getByRole("listitem")).toHaveText([person.organization, person.project, "Project settings", "Project keys"]);
  await expect(crumbs.locator("[aria-current=page]")).toHaveText("Project keys");
  await crumbs.getByRole("link", { name: "Project settings" }).click();
  await page.waitForURL("**/projects/1/settings");
  await expect(crumbs.locator("[aria-current=page]")).toHaveText("Project settings");
  await crumbs.getByRole("link", { name: person.organization }).click();
  await page.waitForURL("**/organizations/*");
  await expect(crumbs.getByRole("listitem")).toHaveText([person.organization, "Settings"]);

  // On a phone there is room for the page and for what it belongs to.
  await page.setViewportSize({ width: 320, height: 780 });
  await page.goto("/projects/1/settings/keys");
  await expect(crumbs.getByRole("listitem").filter({ visible: true })).toHaveText(["Project settings", "Project keys"]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
});

test("the navigation counts what fails beside its page", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { id, project, token } = await newOrganization(server, key);
  const main = page.getByRole("navigation", { name: "Main" });
  await page.goto(`/projects/${project}/settings`);
  await expect(main.locator(".nav-badge")).toHaveCount(0);

  for (const [at, hook] of ["processEvent", "onEvent"].entries()) {
    const plugins = `/api/organizations/${id}/pipeline_destinations/`;
    const plugin = (await call(server, key, "POST", plugins, { plugin_type: "source", name: hook })).id;
    const code = `export function ${hook}(event) {\n  throw new Error("broken")\n}\n`;
    await call(server, key, "PATCH", `${plugins}${plugin}/update_source/`, { "index.js": code });
    const config = { plugin, order: at + 1, enabled: true, config: {} };
    await call(server, key, "POST", `/api/projects/${project}/pipeline_transformation_configs/`, config);
  }
  // They run from a moment after they were added, and are counted a moment after they failed.
  await expect(async () => {
    await send(server, token, { event: "paid", distinct_id: "ada" });
    await page.reload();
    await expect(main.getByRole("link", { name: "Transformations" })).toHaveText("Transformations1 failing transformation", { timeout: 1_000 });
    await expect(main.getByRole("link", { name: "Plugins" })).toHaveText("Plugins1 failing destination or app", { timeout: 1_000 });
  }).toPass();
  await expect(main.locator(".nav-badge")).toHaveCount(2);
  await expect(main.getByRole("link", { name: "Plugins" })).toHaveAttribute("title", "Failed in the last 24 hours");
});

test("on a phone the navigation is behind a button", async ({ page, server, scripts }) => {
  await page.setViewportSize({ width: 360, height: 780 });
  await enter(page, server, scripts);
  const health = page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Health" });
  await expect(health).toBeHidden();
  await page.getByRole("button", { name: "Menu" }).click();
  await expect(health).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(health).toBeHidden();
  await page.getByRole("button", { name: "Menu" }).click();
  await page.locator("details.account > summary").click();
  await expect(page.getByRole("link", { name: "Help" })).toBeVisible();
  await health.click();
  await page.waitForURL("**/projects/*/health");
});

test("search finds pages and objects by name", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/search");
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill(person.project.toUpperCase());
  await page.getByRole("button", { name: "Search" }).click();
  await expect(page).toHaveURL(/\/search\?q=/);
  // Other tests have projects of this name in other organizations.
  const found = page.getByRole("list", { name: "Projects" }).getByRole("link").first();
  await expect(found).toHaveText(new RegExp(person.project));
  await found.click();
  await page.waitForURL("**/projects/1");

  await page.goto("/search?q=%3Cnothing%3E");
  await expect(page.getByRole("main").getByText("<nothing>")).toBeVisible();
});

test("preferences apply immediately and are kept", async ({ page, server, scripts }) => {
  // A key has a time on its page.
  await apiKey(page, server, scripts);
  await page.goto("/account/preferences");
  await alive(page, scripts);
  await page.getByRole("radio", { name: "Another time zone" }).check();
  await page.getByLabel("Name of the time zone").fill("Nowhere/Land");
  await page.getByRole("button", { name: "Save preferences" }).click();
  await expect(page.getByLabel("Name of the time zone")).toHaveAccessibleDescription(/such as UTC or Europe\/Berlin/);
  await page.getByLabel("Name of the time zone").fill("Asia/Tokyo");
  await page.getByRole("radio", { name: "1.234,5" }).check();
  await save(page, "Save preferences");
  await expect(page.locator("html")).toHaveAttribute("data-zone", "Asia/Tokyo");
  await page.reload();
  await alive(page, scripts);
  await expect(page.getByRole("radio", { name: "1.234,5" })).toBeChecked();
  await expect(page.getByLabel("Name of the time zone")).toHaveValue("Asia/Tokyo");
  await checkPage(page, "preferences with a zone");

  await page.goto("/account/keys");
  await alive(page, scripts);
  const time = page.locator("time.time").first();
  const utc = (await time.getAttribute("datetime")) ?? "";
  const shown = new Date(scripts ? new Date(utc).getTime() + 9 * 60 * 60 * 1000 : utc).toISOString();
  await expect(time).toHaveText(`${shown.slice(0, 10)} ${shown.slice(11, 16)}${scripts ? "" : " UTC"}`);

  await page.goto("/account/preferences");
  await alive(page, scripts);
  await page.getByRole("radio", { name: "Time zone of the browser" }).check();
  await page.getByRole("radio", { name: "1,234.5" }).check();
  await save(page, "Save preferences");
  await expect(page.locator("html")).not.toHaveAttribute("data-zone");
});

test("messages of the session", async ({ page, server, scripts }) => {
  await visit(page, server, scripts);
  // A new session, which has no messages yet.
  await signIn(page, scripts);
  await page.goto("/account/messages");
  await alive(page, scripts);
  await expect(page.getByRole("heading", { level: 1, name: "Messages" })).toBeVisible();
  await expect(page.getByText("No message yet")).toBeVisible();
});

test("help is in the same place on every page", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const places = [];
  for (const path of ["/projects/1/events", "/account", "/search", "/help"]) {
    await page.goto(path);
    await alive(page, scripts);
    await page.locator("details.account > summary").click();
    places.push(await page.locator("details.account").getByRole("link", { name: "Help" }).boundingBox());
  }
  expect(new Set(places.map((place) => JSON.stringify(place))).size).toBe(1);

  await page.getByRole("main").getByRole("link", { name: "Send events", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Send events" })).toBeVisible();
  await expect(page).toHaveTitle("Send events - Help - Weir");
  await expect(page.getByRole("heading", { level: 2, name: "Persons" })).toBeVisible();
  await page.getByRole("link", { name: "All pages of the guide" }).click();
  await page.waitForURL("**/help");
  expect((await page.goto("/help/nothing"))?.status()).toBe(404);
});

test("staff can see the instance page", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.locator("details.account > summary").click();
  await page.getByRole("link", { name: "Instance" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Instance" })).toBeVisible();
  await alive(page, scripts);
  await expect(page.getByRole("region", { name: "Contents" })).toContainText("Accounts");
  await expect(page.getByRole("region", { name: "In progress" })).toContainText("Accepting events");
});
