// Forms that are sent too long after the sign-in: held until the password is confirmed,
// or kept until their sender has signed in again.

import type { Page } from "@playwright/test";
import { withClock } from "../clock";
import { alive, enter, expect, person, save, signInAfterEnd } from "./helpers";

const test = withClock();
const MINUTES = 60;
const HOURS = 60 * MINUTES;

async function confirm(page: Page, scripts: boolean, password: string): Promise<void> {
  await alive(page, scripts);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Confirm", exact: true }).click();
}

/** The page asks for a recent sign-in as well, before anything is typed. */
async function openNewKey(page: Page, scripts: boolean): Promise<void> {
  await page.goto("/account/keys/new");
  if (page.url().includes("/login/again")) {
    await confirm(page, scripts, person.password);
    await page.waitForURL("**/account/keys/new");
  }
  await alive(page, scripts);
}

test("confirming the password makes the change that was sent", async ({ page, server, scripts, clock }) => {
  await enter(page, server, scripts);
  await openNewKey(page, scripts);
  await clock.advance(16 * MINUTES);
  await page.getByLabel("Label").fill("Rooibos");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/login/again?**");
  const signInPage = page.url();
  await expect(page.getByText("Your change has not been made yet.")).toBeVisible();
  await confirm(page, scripts, "not the password at all");
  await expect(page.getByText("This is not the password of your account.")).toBeVisible();
  await expect(page).toHaveURL(/\/login\/again\?.*held=/);
  await confirm(page, scripts, person.password);
  await page.waitForURL("**/account/keys/reveal");
  expect(await page.locator(".reveal-value code").textContent()).toMatch(/^phx_\w{20,}/);

  // Once only.
  await page.goto(signInPage);
  await confirm(page, scripts, person.password);
  await page.waitForURL("**/account/keys/new**");
  await expect(page.getByText("nothing was changed")).toBeVisible();
  await page.goto("/account/keys");
  await expect(page.getByRole("link", { name: "Rooibos", exact: true })).toHaveCount(1);
});

test("a long source is kept when the session has ended", async ({ page, server, scripts, clock }) => {
  await enter(page, server, scripts, "/account");
  const link = await page.locator('a[href^="/organizations/"]').first().getAttribute("href");
  const organization = link?.split("/")[2];
  await page.goto(`/organizations/${organization}/plugins/transformations/add`);
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("Shout");
  await page.getByRole("button", { name: "Write plugin" }).click();
  // The sign-in may be too long ago by now.
  await page.waitForURL(/\/source|\/login\/again/);
  if (page.url().includes("/login/again")) await confirm(page, scripts, person.password);
  await page.waitForURL("**/source");
  const source = `${new URL(page.url()).pathname}?file=index.js`;
  const line = `// ${"Tea leaves are weighed before and after drying. ".repeat(20)}\n`;
  const code = `export function processEvent(event) {\n  return event\n}\n${line.repeat(80)}`;
  await page.goto(source);
  await alive(page, scripts);
  await page.getByLabel("Text of the file").fill(code);
  await clock.advance(13 * HOURS);
  await page.getByRole("button", { name: "Save file" }).click();
  await signInAfterEnd(page, scripts);
  await page.waitForURL("**/source**");
  await expect(page.getByText("This was not saved")).toBeVisible();
  await expect(page.getByLabel("Text of the file")).toHaveValue(code);
  await alive(page, scripts);
  await save(page, "Save file");
  await page.goto(source);
  await expect(page.getByLabel("Text of the file")).toHaveValue(code);
});
