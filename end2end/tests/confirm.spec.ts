// A new account confirms its address, and one that is there changes it.

import { type Page } from "@playwright/test";
import { linkOf, withMail } from "../mail";
import { HOME, alive, apiKey, call, checkPage, enter, expect, person, type Server, signOut } from "./helpers";

const test = withMail();
const SUBJECT = "Confirm your address on Weir";
const password = "nine slow otters in a barn";

async function signInAs(page: Page, scripts: boolean, email: string, password: string): Promise<void> {
  await page.goto("/login");
  await alive(page, scripts);
  await page.getByLabel("E-mail address").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** An invited person makes an account, which waits for its address to be confirmed. */
async function signUp(page: Page, server: Server, scripts: boolean, email: string): Promise<void> {
  const key = await apiKey(page, server, scripts);
  const invite = await call(server, key, "POST", "/api/organizations/@current/invites/", {
    target_email: email,
    first_name: "Grace",
  });
  await signOut(page, scripts);
  await page.goto(`/signup/${invite.token}`);
  await alive(page, scripts);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Create account and join" }).click();
  await page.waitForURL("**/verify_email/*");
}

test("a new account waits for its address to be confirmed", async ({ page, server, scripts, mailbox }) => {
  const email = "grace@weir.example";
  await signUp(page, server, scripts, email);
  await expect(page).toHaveTitle("Confirm your address - Weir");
  await expect(page.getByText("We sent you an e-mail with a link.")).toBeVisible();
  await mailbox.wait(email, SUBJECT);

  // No user is signed in yet, and signing in returns here.
  await signInAs(page, scripts, email, password);
  await page.waitForURL("**/verify_email/*");
  await mailbox.wait(email, SUBJECT, 2);
  await page.goto("/account");
  await page.waitForURL("**/login?next=/account");
});

test("the mail is sent again, and its link signs in once", async ({ page, server, scripts, mailbox }) => {
  const email = "linus@weir.example";
  await signUp(page, server, scripts, email);
  const first = linkOf(await mailbox.wait(email, SUBJECT));
  await page.goto(first.split("?")[0]);
  await alive(page, scripts);
  await page.getByRole("button", { name: "Send the mail again" }).click();
  await expect(page.getByText("On its way", { exact: true })).toBeVisible();
  const link = linkOf(await mailbox.wait(email, SUBJECT, 2));

  await page.goto(`${link}x`);
  await expect(page.getByText("This link does not work any more, or never did.")).toBeVisible();
  await page.goto(link);
  await alive(page, scripts);
  await expect(page.getByText(email)).toBeVisible();
  await page.getByRole("button", { name: "Confirm address" }).click();
  await page.waitForURL(HOME);

  await page.goto(link);
  await expect(page.getByText("This link does not work any more, or never did.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Confirm address" })).toHaveCount(0);
});

test("an address is changed once the new one is confirmed", async ({ page, server, scripts, mailbox }) => {
  const email = "barbara@weir.example";
  const moved = "barbara@elsewhere.example";
  await signUp(page, server, scripts, email);
  await page.goto(linkOf(await mailbox.wait(email, SUBJECT)));
  await alive(page, scripts);
  await page.getByRole("button", { name: "Confirm address" }).click();
  await page.waitForURL(HOME);
  await page.goto("/account");
  await alive(page, scripts);
  const field = page.getByLabel("New e-mail address");
  await field.fill("grace@nowhere");
  await page.getByRole("button", { name: "Change address" }).click();
  await expect(field).toHaveAccessibleDescription(/Enter a valid email address/);
  await field.fill(moved);
  await page.getByRole("button", { name: "Change address" }).click();
  const pending = page.getByText(`A mail with a link is on its way to ${moved}`);
  await expect(pending).toBeVisible();

  // Withdrawn, and requested again.
  await page.getByRole("button", { name: "Keep the current address" }).click();
  await expect(pending).toHaveCount(0);
  const void_ = linkOf(await mailbox.wait(moved, SUBJECT));
  await page.goto(void_);
  await expect(page.getByText("This link does not work any more, or never did.")).toBeVisible();
  await page.goto("/account");
  await alive(page, scripts);
  await field.fill(moved);
  await page.getByRole("button", { name: "Change address" }).click();
  await expect(pending).toBeVisible();

  await page.goto(linkOf(await mailbox.wait(moved, SUBJECT, 2)));
  await alive(page, scripts);
  await expect(page.getByText(moved)).toBeVisible();
  await page.getByRole("button", { name: "Confirm address" }).click();
  await page.waitForURL(HOME);
  await signOut(page, scripts);
  await signInAs(page, scripts, email, password);
  await expect(page.getByRole("alert")).toContainText("Invalid email or password.");
  await signInAs(page, scripts, moved, password);
  await page.waitForURL(HOME);
});

// Without scripts the same pages are walked; axe itself is a script.
test("pages are accessible", async ({ page, server, scripts, mailbox }) => {
  test.setTimeout(180_000);
  const email = "mary@weir.example";
  await signUp(page, server, scripts, email);
  const link = linkOf(await mailbox.wait(email, SUBJECT));
  await page.goto(link.split("?")[0]);
  await alive(page, scripts);
  if (scripts) await checkPage(page, "mail on its way");
  await page.goto(`${link}x`);
  await alive(page, scripts);
  if (scripts) await checkPage(page, "void link");
  await enter(page, server, scripts, "/account");
  await alive(page, scripts);
  await page.getByLabel("New e-mail address").fill("ada@elsewhere.example");
  await page.getByRole("button", { name: "Change address" }).click();
  await expect(page.getByRole("button", { name: "Keep the current address" })).toBeVisible();
  await alive(page, scripts);
  if (scripts) await checkPage(page, "address that waits");
  await page.goto(linkOf(await mailbox.wait("ada@elsewhere.example", SUBJECT)));
  await alive(page, scripts);
  if (scripts) await checkPage(page, "link that works");
});
