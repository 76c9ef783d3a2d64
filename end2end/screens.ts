// Pictures of pages for review, see tests/pages.screens.ts.

import { type Page } from "@playwright/test";
import { alive } from "./tests/helpers";

const directory = process.env.WEIR_SCREENS ?? "";

export async function shot(page: Page, name: string): Promise<void> {
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
