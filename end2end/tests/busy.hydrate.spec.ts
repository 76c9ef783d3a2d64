// A form shows at once that it is being sent, and is sent once.

import { alive, enter, expect, test } from "./helpers";

test.describe.configure({ mode: "serial" });

test("a form that is being sent says so and is not sent twice", async ({ page, server }) => {
  await enter(page, server, true);
  await page.goto("/account");
  await alive(page, true);
  let sent = 0;
  let answer = () => {};
  const asked = new Promise<void>((resolve) => (answer = resolve));
  await page.route("**/_fn/rename_account", async (route) => {
    sent += 1;
    await asked;
    await route.continue();
  });
  await page.getByLabel("First name").fill("Grace");
  const button = page.getByRole("main").locator("form", { hasText: "First name" }).locator("button[type=submit]");
  await button.click({ noWaitAfter: true });
  await expect(button).toHaveText("Saving name...");
  await expect(button).toBeDisabled();
  await expect(page.locator("form[aria-busy=true]")).toHaveCount(1);
  // The keyboard does not send it again either.
  await page.getByLabel("First name").press("Enter", { noWaitAfter: true });
  await page.evaluate(() => document.querySelector<HTMLFormElement>("form[aria-busy]")?.requestSubmit());
  expect(sent).toBe(1);
  answer();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  await expect(page.locator("form[aria-busy]")).toHaveCount(0);
});

test("a button without words of its own is held back as well", async ({ page, server }) => {
  await enter(page, server, true);
  await page.goto("/account");
  await alive(page, true);
  await page.evaluate(() => {
    const form = document.createElement("form");
    form.method = "post";
    form.action = "/_fn/choose_theme";
    form.innerHTML = '<input name="theme" value="dark"><button type="submit" id="plain">Dark</button>';
    document.querySelector("main")?.append(form);
  });
  await page.route("**/_fn/choose_theme", () => {});
  await page.locator("#plain").click({ noWaitAfter: true });
  await expect(page.locator("#plain")).toBeDisabled();
});
