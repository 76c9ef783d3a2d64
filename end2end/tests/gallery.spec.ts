// The components of all pages, each as it is meant to look.

import { alive, checkPage, enter, expect, test } from "./helpers";

/** Ids of the gallery's sections. */
const SECTIONS = [
  "panel-content",
  "panel-initial",
  "panel-no-match",
  "panel-failed",
  "panel-refused",
  "panel-waiting",
  "ways",
  "filter",
  "table",
  "pagers",
  "confirm",
  "typed-confirm",
  "fields",
  "choices",
  "faults",
  "guarded-form",
  "alerts",
  "toasts",
  "states",
  "numbers",
  "code",
  "request",
  "icons",
  "charts",
];

test("visitors without a session do not see it", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.context().clearCookies();
  // The open page goes to the sign-in automatically.
  const other = await page.context().newPage();
  await other.goto("/gallery");
  await expect(other.getByRole("button", { name: "Sign in" })).toBeVisible();
});

test("every part is accessible", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/gallery");
  await alive(page, scripts);
  const ids = await page.locator("section.section").evaluateAll((found) => found.map((section) => section.id));
  expect(ids, "the list of this file is complete").toEqual(SECTIONS);
  await checkPage(page, "gallery");
});

test("lists keep the other parameters of the address", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/gallery?q=ada&offset=100");
  await alive(page, scripts);
  const pager = page.locator("#pagers .pager").first();
  await expect(pager).toContainText("101 to 150 of 1,204 members");
  await pager.getByRole("link", { name: "Next" }).click();
  await page.waitForURL("**/gallery?q=ada&offset=150");
  await page.locator("#table").getByRole("link", { name: "Rows" }).click();
  await page.waitForURL("**/gallery?q=ada&sort=-rows");
  await expect(page.locator("#table").getByRole("columnheader", { name: "Rows" })).toHaveAttribute("aria-sort", "descending");
  await alive(page, scripts);
  await page.locator("#filter").getByLabel("Name or address").fill("grace");
  await page.locator("#filter").getByRole("button", { name: "Filter" }).click();
  await page.waitForURL(/\/gallery\?q=grace(&level=)?$/);
});

test("a confirmation opens and names the consequences", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/gallery");
  await alive(page, scripts);
  const section = page.locator("#confirm");
  await expect(section.getByRole("button", { name: "Revoke key" })).toBeHidden();
  await section.locator("summary", { hasText: "Revoke" }).click();
  await expect(section.getByText("This cannot be undone.")).toBeVisible();
  await expect(section.getByRole("button", { name: "Revoke key" })).toBeVisible();
});

test("every part matches its picture", async ({ page, server, scripts }) => {
  // Scripts change nothing that is seen at first; one picture of each is enough.
  test.skip(scripts, "pictures are taken without scripts");
  test.setTimeout(180_000);
  await enter(page, server, scripts);
  for (const theme of ["light", "dark"] as const) {
    for (const width of [1280, 360]) {
      // Also for the highest part that fits on a page, below the line above it.
      await page.setViewportSize({ width, height: 1100 });
      await page.emulateMedia({ colorScheme: theme });
      await page.goto("/gallery");
      for (const id of SECTIONS) {
        await expect.soft(page.locator(`#${id}`)).toHaveScreenshot(`gallery-${id}-${theme}-${width}.png`);
      }
    }
  }
});
