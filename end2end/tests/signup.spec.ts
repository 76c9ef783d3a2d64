// Taking up an invite: with a new account, with one that is there, and not at all.

import type { Page } from "@playwright/test";
import { HOME, alive, apiKey, call, checkPage, expect, join, person, type Server, signOut, test } from "./helpers";

const invited = { name: "Grace", email: "grace@weir.example", password: "nine slow otters in a barn" };

const invite = (server: Server, key: string, organization: string, email: string) =>
  call(server, key, "POST", `/api/organizations/${organization}/invites/`, {
    target_email: email,
    first_name: invited.name,
    message: "Have a look.\n<b>See you</b>",
  });

/** The page of an invite has its texts for every visitor. */
async function expectWords(page: Page, inviter: string, organization: string): Promise<void> {
  await expect(page.getByText(`${inviter} invited you to join ${organization}.`)).toBeVisible();
  await expect(page.getByText("Member", { exact: true })).toBeVisible();
  // As it was written: lines end where they ended, and nothing is markup.
  expect(await page.getByText("Have a look.").innerText()).toBe("Have a look.\n<b>See you</b>");
}

test("a new person signs up", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  // Other tests on the same server may have given either another name.
  const home = await call(server, key, "GET", "/api/organizations/@current/");
  const inviter = await call(server, key, "GET", "/api/users/@me/");
  const made = await invite(server, key, home.id, invited.email);
  await signOut(page, scripts);

  await page.goto(`/signup/${made.token}`);
  await alive(page, scripts);
  await expectWords(page, inviter.first_name, home.name);
  await checkPage(page, "invite");
  await expect(page.getByLabel("E-mail address")).toHaveValue(invited.email);
  await expect(page.getByLabel("First name")).toHaveValue(invited.name);
  await page.getByLabel("Password", { exact: true }).fill("short");
  await page.getByRole("button", { name: "Create account and join" }).click();
  await expect(page.getByText("This password is too short.")).toBeVisible();
  await page.getByLabel("Password", { exact: true }).fill(invited.password);
  await page.getByRole("button", { name: "Create account and join" }).click();
  await page.waitForURL(HOME);

  // The link worked once.
  await page.goto(`/signup/${made.token}`);
  await expect(page.getByText(/This link is unknown or no longer valid/)).toBeVisible();
});

test("a user with an account signs in and joins", async ({ page, server, scripts }) => {
  const member = { ...invited, email: "linus@weir.example" };
  const key = await apiKey(page, server, scripts);
  const current = await call(server, key, "GET", "/api/organizations/@current/");
  await join(server, key, current.id, member);
  const home = await call(server, key, "POST", "/api/organizations/", { name: "Second home" });
  const made = await invite(server, key, home.id, member.email);
  await signOut(page, scripts);
  await page.goto(`/signup/${made.token}`);
  await alive(page, scripts);
  const inviter = await call(server, key, "GET", "/api/users/@me/");
  await expectWords(page, inviter.first_name, home.name);
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByLabel("E-mail address").fill(member.email);
  await page.getByLabel("Password", { exact: true }).fill(member.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`**/signup/${made.token}`);
  await alive(page, scripts);
  await page.getByRole("button", { name: "Join" }).click();
  await page.waitForURL(HOME);
  await page.goto("/organizations");
  await expect(page.getByText("Second home").first()).toBeVisible();
});

test("an invite is only for its address", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const made = await invite(server, key, "@current", "barbara@weir.example");
  await page.goto(`/signup/${made.token}`);
  await alive(page, scripts);
  const whose = `This invite is for barbara@weir.example. You are signed in as ${person.email}.`;
  await expect(page.getByText(whose)).toBeVisible();
  await checkPage(page, "invite for another address");
  await page.getByRole("button", { name: "Sign out and continue" }).click();
  await expect(page.getByRole("button", { name: "Create account and join" })).toBeVisible();
  await expect(page.getByLabel("E-mail address")).toHaveValue("barbara@weir.example");
  await page.goto("/account");
  await expect(page).toHaveURL(/\/login\?next=\/account$/);
});
