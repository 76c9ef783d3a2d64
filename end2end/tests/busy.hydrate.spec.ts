// A form shows immediately that it is being sent, and is sent once.

import type { Page } from "@playwright/test";
import { alive, enter, expect, test } from "./helpers";

/** Lets a function not answer, and counts its calls. */
async function stay(page: Page, name: string): Promise<() => number> {
  let calls = 0;
  await page.route(`**/_fn/${name}`, () => {
    calls += 1;
  });
  return () => calls;
}

test("a form that is being sent says so and is not sent twice", async ({ page, server }) => {
  await enter(page, server, true, "/account");
  await alive(page, true);
  const calls = await stay(page, "rename_account");
  await page.getByLabel("First name").fill("Grace");
  const form = page.locator("form", { has: page.getByLabel("First name") });
  const button = form.locator("button[type=submit]");
  await button.click();
  await expect(button).toHaveText("Saving name...");
  await expect(button).toBeDisabled();
  await expect(form).toHaveAttribute("aria-busy", "true");
  // Neither the keyboard nor a script sends it again.
  await page.getByLabel("First name").press("Enter");
  await form.evaluate((element) => (element as HTMLFormElement).requestSubmit());
  await expect(form).toHaveAttribute("aria-busy", "true");
  expect(calls()).toBe(1);

  await page.unroute("**/_fn/rename_account");
  await page.reload();
  await alive(page, true);
  await expect(button).toBeEnabled();
  await expect(button).toHaveText("Save name");
});

test("a button without a busy text is disabled as well", async ({ page, server }) => {
  await enter(page, server, true, "/account");
  await alive(page, true);
  const calls = await stay(page, "choose_theme");
  await page.evaluate(() => {
    const form = document.createElement("form");
    form.method = "post";
    form.action = "/_fn/choose_theme";
    form.innerHTML = '<input name="theme" value="dark"><button type="submit" id="plain">Dark</button>';
    document.querySelector("main")?.append(form);
  });
  await page.locator("#plain").click();
  await expect(page.locator("#plain")).toBeDisabled();
  expect(calls()).toBe(1);
});
