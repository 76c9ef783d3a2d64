// Taking up an invite: with a new account, with one that is there, and not at all.

import { type Page } from "@playwright/test";
import { alive, enter, expect, type Server, signIn, test } from "./helpers";

test.describe.configure({ mode: "serial" });

const invited = { name: "Grace", email: "grace@weir.example", password: "nine slow otters in a barn" };

let key = "";

/** Calls the management API with the owner's key. */
async function call(server: Server, method: string, path: string, body?: object): Promise<any> {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  expect(answer.ok, `${method} ${path}: ${answer.status}`).toBe(true);
  return answer.status === 204 ? undefined : answer.json();
}

const invite = (server: Server, organization: string, email: string) =>
  call(server, "POST", `/api/organizations/${organization}/invites/`, { target_email: email, first_name: invited.name });

async function signOut(page: Page, scripts: boolean): Promise<void> {
  await page.goto("/account");
  await alive(page, scripts);
  await page.getByRole("main").getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL("**/login");
}

test("a new person signs up", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/account/keys/new");
  await alive(page, scripts);
  await page.getByLabel("Label").fill("Invites");
  await page.locator("input[value=all]").check();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  key = (await page.locator(".reveal-value code").textContent()) ?? "";
  // Other tests on the same server may have given either another name.
  const home = await call(server, "GET", "/api/organizations/@current/");
  const inviter = await call(server, "GET", "/api/users/@me/");
  const made = await invite(server, home.id, invited.email);
  await signOut(page, scripts);

  await page.goto(`/signup/${made.id}`);
  await alive(page, scripts);
  await expect(page.getByText(`${inviter.first_name} invited you to join ${home.name}.`)).toBeVisible();
  await expect(page.getByLabel("E-mail address")).toHaveValue(invited.email);
  await expect(page.getByLabel("First name")).toHaveValue(invited.name);
  await page.getByLabel("Password", { exact: true }).fill("short");
  await page.getByRole("button", { name: "Create account and join" }).click();
  await expect(page.getByText("This password is too short.")).toBeVisible();
  await page.getByLabel("Password", { exact: true }).fill(invited.password);
  await page.getByRole("button", { name: "Create account and join" }).click();
  await page.waitForURL("**/projects/*/start");

  // The link worked once.
  await page.goto(`/signup/${made.id}`);
  await expect(page.getByText("The provided invite ID is not valid.")).toBeVisible();
});

test("who has an account signs in and joins", async ({ page, server, scripts }) => {
  const home = await call(server, "POST", "/api/organizations/", { name: "Second home" });
  const made = await invite(server, home.id, invited.email);
  await page.goto(`/signup/${made.id}`);
  await alive(page, scripts);
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByLabel("E-mail address").fill(invited.email);
  await page.getByLabel("Password", { exact: true }).fill(invited.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`**/signup/${made.id}`);
  await alive(page, scripts);
  await page.getByRole("button", { name: "Join" }).click();
  await page.waitForURL("**/projects/*/start");
  await page.goto("/organizations");
  await expect(page.getByText("Second home").first()).toBeVisible();
});

test("an invite is for its address alone", async ({ page, server, scripts }) => {
  await signIn(page, scripts);
  const made = await invite(server, "@current", "barbara@weir.example");
  await page.goto(`/signup/${made.id}`);
  await expect(page.getByText("This invite is intended for another email address.")).toBeVisible();
});
