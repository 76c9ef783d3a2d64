// What scripts add to the components of all pages.

import { alive, enter, expect, test } from "./helpers";

test.beforeEach(async ({ page, server }) => {
  await enter(page, server, true, "/gallery");
  await alive(page, true);
});

test("leaving a changed form asks first", async ({ page }) => {
  const field = page.getByLabel("Description");
  const leave = page.getByRole("link", { name: "Go to the account" });
  await field.fill("half a sentence");
  await leave.click();
  const dialog = page.getByRole("dialog", { name: "Leave without saving?" });
  await expect(dialog.getByRole("button", { name: "Keep editing" })).toBeFocused();
  await dialog.getByRole("button", { name: "Keep editing" }).click();
  await expect(dialog).toBeHidden();
  await expect(leave).toBeFocused();
  await expect(field).toHaveValue("half a sentence");
  // Another form leads away as well.
  await page.locator("#filter").getByRole("button", { name: "Filter" }).click();
  await expect(dialog).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  await leave.click();
  await dialog.getByRole("button", { name: "Discard changes" }).click();
  await page.waitForURL("**/account");
});

test("leaving an unchanged form does not ask", async ({ page }) => {
  await page.getByRole("link", { name: "Go to the account" }).click();
  await page.waitForURL("**/account");
});

test("after the first submit a field is validated when it loses the focus", async ({ page }) => {
  const fields = page.locator("#fields");
  const name = fields.getByLabel("Name", { exact: true });
  const note = fields.getByLabel("Note");
  await name.fill("");
  await note.focus();
  await expect(name, "the form was not sent yet").not.toHaveAttribute("aria-invalid");
  await fields.getByRole("button", { name: "Save settings" }).click();
  await expect(name, "the browser leads to it").toBeFocused();
  await note.focus();
  await expect(name).toHaveAttribute("aria-invalid", "true");
  await expect(name).toHaveAccessibleDescription(/^What people see\. .+/);
  await name.fill("Mill");
  await expect(name).not.toHaveAttribute("aria-invalid");
  await expect(name).toHaveAccessibleDescription("What people see.");
});

test("choosing an option submits a filter", async ({ page }) => {
  await page.locator("#filter").getByLabel("Level").selectOption("owner");
  await page.waitForURL("**level=owner**");
  await expect(page.locator("#filter").getByLabel("Level")).toHaveValue("owner");
});

test("a request follows what is typed", async ({ page }) => {
  const request = page.locator("#request form details");
  await request.locator("summary").click();
  await expect(request.locator("pre")).toContainText('"first_name": "Ada"');
  await page.locator("#request").getByLabel("First name").fill(`Zoë "Z" O'Hara`);
  await expect(request.locator("pre")).toContainText(`"first_name": "Zoë \\"Z\\" O'\\''Hara"`);
});

test("messages disappear, but not under the pointer", async ({ page }) => {
  const removed = page.getByText("The member was removed.");
  await expect(removed).toBeVisible();
  await removed.hover();
  const paused = page.getByText('The export "Finance" was paused.');
  await expect(paused).toBeHidden({ timeout: 20_000 });
  await expect(removed, "it stays below the pointer").toBeVisible();
  await removed.locator("..").getByRole("button", { name: "Close this message" }).click();
  await expect(removed).toBeHidden();
});

test("a name has to be typed first", async ({ page }) => {
  const button = page.getByRole("button", { name: "Delete organization" });
  await expect(button).toBeDisabled();
  await expect(page.getByText("Type the name to continue.")).toBeVisible();
  await page.getByLabel("Name of the organization").fill("Upstream Works");
  await expect(button).toBeEnabled();
});
