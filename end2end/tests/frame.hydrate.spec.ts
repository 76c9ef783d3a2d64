// Search over the page and the keys, from the keyboard.

import { alive, checkPage, enter, expect, person, save, test } from "./helpers";

test("the code of a page loads while its link is hovered or focused, its data when the link is pressed", async ({ page, server }) => {
  await enter(page, server, true, "/account");
  await alive(page, true);
  const link = (name: string) => page.getByRole("navigation", { name: "Main", exact: true }).getByRole("link", { name });
  const code = () => page.waitForRequest((request) => request.url().endsWith(".wasm"));
  const ofFocused = code();
  await link("Exports").focus();
  await ofFocused;
  const ofHovered = code();
  await link("Migrations").hover();
  await ofHovered;

  let calls = 0;
  page.on("request", (request) => {
    if (request.url().endsWith("/_fn/get_imports")) calls += 1;
  });
  await page.mouse.down();
  await expect.poll(() => calls).toBe(1);
  await expect(page).toHaveURL(/\/account$/);
  await page.mouse.up();
  await expect(page.getByRole("heading", { level: 1, name: "Migrations" })).toBeVisible();
  expect(calls, "the page takes the data that was loaded").toBe(1);
});

test("a list shows how long ago something was, and the time under the pointer and for the keyboard", async ({ page, server }) => {
  await page.clock.install();
  await enter(page, server, true, "/account");
  await alive(page, true);
  await page.getByRole("navigation", { name: "Main", exact: true }).getByRole("link", { name: "Members" }).click();
  const time = page.getByRole("table", { name: "Members" }).locator("time.ago").first();
  await expect(time).toHaveAttribute("data-ago", /^(now|\d+ min ago)$/);
  await expect(time).toHaveText(/^\d{4}-\d\d-\d\d \d\d:\d\d$/);
  /** The opacity of the time, and of its age. */
  const shown = () => time.evaluate((element) => [getComputedStyle(element.firstElementChild!).opacity, getComputedStyle(element, "::after").opacity]);
  await page.mouse.move(0, 0);
  await expect.poll(shown).toEqual(["0", "1"]);
  await time.hover();
  await expect.poll(shown).toEqual(["1", "0"]);
  await page.mouse.move(0, 0);
  await page.locator(".row-menu > summary").first().focus();
  await expect.poll(shown).toEqual(["1", "0"]);

  await page.clock.fastForward("01:00:00");
  await expect(time).toHaveAttribute("data-ago", "1 h ago");
  // The server says nothing about ages.
  await page.reload();
  await alive(page, true);
  await expect(time).toHaveAttribute("data-ago", "1 h ago");
});

test("the palette searches, and returns the focus", async ({ page, server }) => {
  await enter(page, server, true, "/account");
  await alive(page, true);
  const name = page.getByLabel("First name");
  await name.focus();
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("dialog", { name: "Find anything" });
  const field = palette.getByRole("textbox", { name: "Find anything" });
  await expect(field).toBeFocused();
  await expect(palette.getByRole("list", { name: "Pages" }).getByRole("link").first()).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(palette).toBeHidden();
  await expect(name).toBeFocused();

  await page.keyboard.press("Control+k");
  await field.fill("no such thing");
  await expect(palette.getByRole("status")).toContainText("no such thing");
  await field.fill("set");
  const pages = palette.getByRole("list", { name: "Pages" }).getByRole("link");
  await expect(pages).toHaveText([/^Project settings/, /^Organization settings/]);
  await checkPage(page, "palette");
  await field.focus();
  await page.keyboard.press("ArrowDown");
  await expect(pages.first()).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await expect(field).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await expect(pages.last()).toBeFocused();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/organizations/*");

  await alive(page, true);
  await page.getByRole("link", { name: "Search" }).click();
  await field.fill(person.project);
  await expect(palette.getByRole("list", { name: "Projects" }).getByRole("link")).toBeVisible();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/projects/1");
});

test("while the palette is open, only it can be used", async ({ page, server }) => {
  await enter(page, server, true, "/account");
  await alive(page, true);
  const opener = page.getByRole("link", { name: "Search" });
  await opener.click();
  const palette = page.getByRole("dialog", { name: "Find anything" });
  await expect(palette).toHaveAttribute("aria-modal", "true");
  await expect(page.locator(".frame")).toHaveAttribute("inert");
  const links = palette.getByRole("link");
  await expect(links.first()).toBeVisible();
  for (let at = 0; at < (await links.count()) + 8; at++) {
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => !!document.activeElement?.closest(".frame, .skip"))).toBe(false);
  }

  // A press beside the panel, where the page has a link, closes it and follows nothing.
  const path = new URL(page.url()).pathname;
  const brand = (await page.getByRole("link", { name: "Weir, start", includeHidden: true }).boundingBox())!;
  await page.mouse.click(brand.x + brand.width / 2, brand.y + brand.height / 2);
  await expect(palette).toBeHidden();
  await expect(page.locator(".frame")).not.toHaveAttribute("inert");
  await expect(opener).toBeFocused();
  expect(new URL(page.url()).pathname).toBe(path);

  // Nor does the page stay inert when a result opens another one.
  await page.keyboard.press("Control+k");
  await palette.getByRole("textbox", { name: "Find anything" }).fill("set");
  await expect(page.locator(".frame")).toHaveAttribute("inert");
  // The list of all pages is longer: a press there could be one beside the shorter list.
  const pages = palette.getByRole("list", { name: "Pages" }).getByRole("link");
  await expect(pages).toHaveText([/^Project settings/, /^Organization settings/]);
  await pages.first().click();
  await page.waitForURL("**/settings");
  await expect(page.locator(".frame")).not.toHaveAttribute("inert");

  // Nor when the result is the page that is open.
  await page.keyboard.press("Control+k");
  await expect(page.locator(".frame")).toHaveAttribute("inert");
  await expect(pages).toHaveCount(2);
  await pages.first().click();
  await expect(palette).toBeHidden();
  await expect(page.locator(".frame")).not.toHaveAttribute("inert");
  await expect(page).toHaveURL(/\/settings$/);
});

test("keyboard shortcuts open pages, unless they are switched off", async ({ page, server }) => {
  await enter(page, server, true);
  await alive(page, true);
  await page.keyboard.press("Shift+?");
  const list = page.getByRole("dialog", { name: "Keys" });
  await expect(list).toContainText("Go to Health");
  await checkPage(page, "list of keys");
  await page.keyboard.press("Escape");
  await expect(list).toBeHidden();
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.waitForURL("**/projects/1/health");

  // Not while something is typed.
  await page.goto("/account");
  await alive(page, true);
  await page.getByLabel("First name").focus();
  await page.keyboard.type("?gh");
  await expect(list).toBeHidden();
  await expect(page).toHaveURL(/\/account$/);

  await page.goto("/account/preferences");
  await alive(page, true);
  await page.getByLabel("Single-key shortcuts").uncheck();
  await save(page, "Save preferences");
  // The frame is loaded again after an action.
  await expect(page.locator("html")).toHaveAttribute("data-shortcuts", "off");
  await page.getByRole("heading", { level: 1 }).click();
  await page.keyboard.press("Shift+?");
  await page.keyboard.press("Control+k");
  await expect(page.getByRole("dialog", { name: "Find anything" })).toBeVisible();
  await expect(list).toBeHidden();
});

test("a list that cannot be loaded has its own title", async ({ page, server }) => {
  await enter(page, server, true, "/account");
  await alive(page, true);
  await page.getByRole("navigation", { name: "Main", exact: true }).getByRole("link", { name: "Plugins" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Destinations" })).toBeVisible();
  await page.route("**/_fn/list_plugins**", (route) => route.abort());
  await page.getByRole("navigation", { name: "Plugin lists" }).getByRole("link", { name: "Frontend apps" }).click();
  await expect(page.getByRole("link", { name: "Try again" })).toBeVisible();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Frontend apps");
  await expect(page).toHaveTitle("Frontend apps - Weir");
});
