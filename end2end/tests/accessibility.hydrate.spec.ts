// Pages in states that the map does not have, in both themes, wide and narrow; and
// what scripts add for those who do not use a mouse.

import { alive, checkPage as check, enter, expect, person, projectKey, send, test } from "./helpers";

test("before the sign-in", async ({ page, server }) => {
  for (const [what, path] of [
    ["set-up", server.setupLink],
    ["void link", "/setup?token=x"],
    ["sign-in of an empty instance", "/login"],
    ["void invite", "/signup/x"],
    ["nothing", "/nowhere"],
  ] as const) {
    await page.goto(path);
    await alive(page, true);
    await check(page, what);
  }
});

test("pages without data", async ({ page, server }) => {
  await enter(page, server, true);
  for (const path of ["/projects/1/start", "/projects/1/events", "/projects/1/health", "/account/keys"]) {
    await page.goto(path);
    await alive(page, true);
    await check(page, `${path}, empty`);
  }
  await page.goto("/projects/999/events");
  await alive(page, true);
  await check(page, "no such project");
});

test("keys, rows and reasons", async ({ page, server }) => {
  await enter(page, server, true);
  const key = await projectKey(page);
  const long = "averylongnamewithoutanyspaceinit".repeat(4);
  await send(server, key, { event: "page viewed", distinct_id: "ada", properties: { $current_url: "https://weir.example/a/long/path?with=query", $lib: "web" } });
  await send(server, key, { event: long, distinct_id: long });
  await send(server, key, { event: "no one" });

  await page.goto("/account/keys/new");
  await alive(page, true);
  await page.getByLabel("Custom").check();
  await check(page, "new key");
  await page.getByRole("radio", { name: "Everything All that you may do" }).check();
  await page.getByLabel("Label").fill("For the list");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  await check(page, "reveal");

  await page.goto("/projects/1/events");
  await alive(page, true);
  await page.locator(".row-link", { hasText: "no one" }).click();
  await check(page, "event with panel");
  await page.locator(".switch > summary").click();
  await check(page, "open menu");

  await page.goto("/projects/1/health");
  await alive(page, true);
  await page.getByText("Latest sample").first().click();
  await check(page, "health with a sample");
});

test("a refused form", async ({ page, server }) => {
  await enter(page, server, true, "/organizations/new");
  await alive(page, true);
  await page.getByLabel("Name").fill("  ");
  await page.getByRole("button", { name: "Create organization" }).click();
  await expect(page.getByLabel("Name")).toBeFocused();
  await check(page, "refused form");
});

test("a link opens a page with its own title, and the focus moves to its content", async ({ page, server }) => {
  await enter(page, server, true);
  await alive(page, true);
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Events" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Events" })).toBeVisible();
  await expect(page).toHaveTitle(`Events - ${person.project} - Weir`);
  await expect(page.getByRole("main")).toBeFocused();
  await page.reload();
  await alive(page, true);
  const skip = page.getByRole("link", { name: "Skip to content" });
  await page.keyboard.press("Tab");
  await expect(skip).toBeFocused();
  await expect(skip).toBeInViewport();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("main")).toBeFocused();
});

test("arrow keys move through a menu, and up from its first link to its button", async ({ page, server }) => {
  await enter(page, server, true);
  await alive(page, true);
  const menu = page.locator("details.account");
  const opener = menu.locator("summary");
  const links = menu.locator(".menu-body :is(a, button)");
  await opener.click();
  await page.keyboard.press("ArrowDown");
  await expect(links.nth(0)).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await expect(links.nth(1)).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await expect(opener).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await expect(links.last()).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await expect(links.nth(0)).toBeFocused();
});

test("menus close on Escape and on a click elsewhere", async ({ page, server }) => {
  await enter(page, server, true);
  await alive(page, true);
  const menu = page.locator("details.account");
  await menu.locator("summary").click();
  await expect(page.getByRole("link", { name: "Account" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(menu).not.toHaveAttribute("open");
  await expect(menu.locator("summary")).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(menu).toHaveAttribute("open");
  await page.locator("details.switch > summary").click();
  await expect(menu).not.toHaveAttribute("open");
});

test("a value is copied, a password shown, a form sent once", async ({ page, server, context }) => {
  await enter(page, server, true);
  await alive(page, true);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy project key" }).click();
  await expect(page.getByRole("button", { name: "Copied project key" })).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^phc_\w+$/);

  await page.goto("/login/again?next=/account");
  await alive(page, true);
  const password = page.getByLabel("Password", { exact: true });
  await password.fill("what I typed");
  await page.getByRole("button", { name: "Show password" }).click();
  await expect(password).toHaveAttribute("type", "text");
  // An answer without content leaves the page as it is.
  await page.route("**/_fn/sign_in_again", (route) => route.fulfill({ status: 204 }));
  await page.getByRole("button", { name: "Confirm" }).click();
  await expect(page.getByRole("button", { name: "Confirming..." })).toBeDisabled();
});
