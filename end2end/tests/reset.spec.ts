// A forgotten password: asking for a link, and setting a new one.

import type { Page } from "@playwright/test";
import { linkOf, type Mailbox, withMail } from "../mail";
import { HOME, alive, checkPage, expect, person, signIn, visit } from "./helpers";

const test = withMail();
const SUBJECT = "Set a new password on Weir";
const next = "nine slow otters in a barn";

/** Asks for a link, and returns it. */
async function ask(page: Page, scripts: boolean, mailbox: Mailbox): Promise<string> {
  const before = mailbox.mails.filter(({ subject }) => subject === SUBJECT).length;
  await page.goto("/reset");
  await alive(page, scripts);
  await page.getByLabel("E-mail address").fill(person.email);
  await page.getByRole("button", { name: "Send the link" }).click();
  await page.waitForURL("**/reset?sent=yes");
  return linkOf(await mailbox.wait(person.email, SUBJECT, before + 1));
}

test("an account gets a link, and the answer is the same without an account", async ({ page, server, scripts, mailbox }) => {
  await visit(page, server, scripts);
  const before = mailbox.mails.length;
  for (const email of ["nobody@weir.example", person.email]) {
    await page.goto("/login");
    await page.getByRole("link", { name: "Forgot your password?" }).click();
    await page.waitForURL("**/reset");
    await expect(page).toHaveTitle("Forgot your password? - Weir");
    await alive(page, scripts);
    await page.getByLabel("E-mail address").fill(email);
    await page.getByRole("button", { name: "Send the link" }).click();
    await expect(page.getByText("If there is an account with this address, an e-mail with a link is on its way to it.")).toBeVisible();
  }
  await mailbox.wait(person.email, SUBJECT, before + 1);
  expect(mailbox.mails.slice(before).map((mail) => mail.to)).toEqual([person.email]);

  await page.goto("/reset");
  await alive(page, scripts);
  await page.getByLabel("E-mail address").fill("ada@nowhere");
  await page.getByRole("button", { name: "Send the link" }).click();
  await expect(page.getByLabel("E-mail address")).toHaveAccessibleDescription(/Enter a valid email address/);
  await expect(page.getByLabel("E-mail address")).toHaveValue("ada@nowhere");
});

// Without scripts the same pages are walked; axe itself is a script.
test("pages are accessible", async ({ page, server, scripts, mailbox }) => {
  test.setTimeout(180_000);
  await visit(page, server, scripts);
  const link = await ask(page, scripts, mailbox);
  for (const [what, path] of [
    ["sign-in with a way out", "/login?reset=done"],
    ["asking", "/reset"],
    ["asked", "/reset?sent=yes"],
    ["void link", `${link}x`],
  ] as const) {
    await page.goto(path);
    await alive(page, scripts);
    if (scripts) await checkPage(page, what);
  }
  await page.goto(link);
  await alive(page, scripts);
  if (scripts) await checkPage(page, "new password");
});

// The last one: the account has another password afterwards.
test("the link sets a password once and ends sessions", async ({ page, browser, server, scripts, mailbox }) => {
  await visit(page, server, scripts);
  const link = await ask(page, scripts, mailbox);
  await signIn(page, scripts);
  // The start page has a live list, which opens the sign-in page as soon as the session ends.
  await page.goto("/account");
  const other = await browser.newContext({ baseURL: server.url, javaScriptEnabled: scripts });
  const tab = await other.newPage();
  await tab.goto(link);
  await alive(tab, scripts);
  await expect(tab).toHaveTitle("Set a new password - Weir");
  await expect(tab.getByLabel("E-mail address")).toHaveValue(person.email);
  const field = tab.getByLabel("New password", { exact: true });
  await field.fill("short");
  await tab.getByRole("button", { name: "Set the password" }).click();
  await expect(field).toHaveAccessibleDescription(/This password is too short/);
  await alive(tab, scripts);
  await field.fill(next);
  await tab.getByRole("button", { name: "Set the password" }).click();
  await tab.waitForURL("**/login?reset=done");
  await expect(tab.getByText("Your password is changed. Sign in with the new one.")).toBeVisible();
  await alive(tab, scripts);
  await tab.getByLabel("E-mail address").fill(person.email);
  await tab.getByLabel("Password", { exact: true }).fill(next);
  await tab.getByRole("button", { name: "Sign in" }).click();
  await tab.waitForURL(HOME);

  await tab.goto(link);
  await expect(tab.getByText("This link does not work any more, or never did.")).toBeVisible();
  await tab.getByRole("link", { name: "Ask for a new link" }).click();
  await tab.waitForURL("**/reset");
  await other.close();

  // The session that was open before.
  await page.goto("/account");
  await expect(page).toHaveURL(/\/login\?next=\/account$/);
});
