// Pictures of pages for review, see tests/pages.screens.ts.

import { expect, type Page } from "@playwright/test";
import { alive } from "./tests/helpers";

const directory = process.env.WEIR_SCREENS ?? "";

export async function shot(page: Page, name: string): Promise<void> {
  // What was asked for is there.
  await expect(page.locator('form[aria-busy="true"]')).toHaveCount(0);
  await expect(page.getByText("Loading...", { exact: true })).toHaveCount(0);
  await page.evaluate(() => {
    // Cards far below the window are not laid out, and would be empty in the picture.
    const laidOut = new CSSStyleSheet();
    laidOut.replaceSync("* { content-visibility: visible !important; }");
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, laidOut];
    // The rail and the line above the page stay in the window: they belong at the top.
    window.scrollTo(0, 0);
  });
  for (const theme of ["light", "dark"] as const) {
    for (const width of [1440, 1280, 390]) {
      await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
      await page.emulateMedia({ colorScheme: theme });
      await page.screenshot({ path: `${directory}/${name}-${theme}-${width}.png`, fullPage: true });
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}

export async function visit(page: Page, path: string, name: string): Promise<void> {
  await page.goto(path);
  await alive(page, true);
  await shot(page, name);
}

/** Takes the pictures of a form after its answer that refuses it. */
export async function shotOfRefusal(page: Page, name: string): Promise<void> {
  await expect(page.locator(".alert-error, .fault").first()).toBeVisible();
  await shot(page, name);
}
