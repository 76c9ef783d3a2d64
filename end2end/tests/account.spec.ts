// One's own account: name, second factor, sessions, password.

import type { Page } from "@playwright/test";
import { alive, apiKey, authenticatorCode as code, checkPage, enter, expect, forgetSession, join, person, save, shot, signIn, test } from "./helpers";

/** A code that no step around now has. */
function wrongCode(secret: string): string {
  const near = [-2, -1, 0, 1, 2].map((steps) => code(secret, steps));
  return ["000000", "000001", "000002", "000003", "000004", "000005"].find((one) => !near.includes(one)) ?? "";
}

/** Address and password, as far as the page that follows. */
async function begin(page: Page, scripts: boolean): Promise<void> {
  await page.goto("/login?next=/account/security");
  await alive(page, scripts);
  await page.getByLabel("E-mail address").fill(person.email);
  await page.getByLabel("Password", { exact: true }).fill(person.password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Address and password, as far as the second step. */
async function beginBoth(page: Page, scripts: boolean): Promise<void> {
  await begin(page, scripts);
  await page.waitForURL(/\/login\/2fa\?/);
  await alive(page, scripts);
}

/** Waits for the page after a sign-in. Pages before it have its address in theirs. */
async function signedIn(page: Page): Promise<void> {
  await page.waitForURL(({ pathname }) => pathname === "/account/security");
}

/** The sixth digit sends the form where there are scripts. */
async function enterCode(page: Page, scripts: boolean, typed: string): Promise<void> {
  await page.getByLabel("Code", { exact: true }).fill(typed);
  if (!scripts) await page.getByRole("button", { name: "Sign in" }).click();
}

test("names are kept, and the pages of the account link to each other", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/account");
  await alive(page, scripts);
  await page.getByLabel("First name").fill("Grace");
  await page.getByLabel("Last name").fill("Hopper");
  await save(page, "Save name");
  await expect(page.getByLabel("Last name")).toHaveValue("Hopper");
  await page.getByLabel("Last name").fill("");
  await save(page, "Save name");
  await expect(page.getByLabel("Last name")).toHaveValue("");
  await checkPage(page, "account");
  await page.getByRole("navigation", { name: "Account" }).getByRole("link", { name: "Security" }).click();
  await expect(page).toHaveURL(/\/account\/security$/);
  await expect(page.getByRole("heading", { level: 1, name: "Security" })).toBeVisible();
});

test("two-step sign-in is turned on, asked for at each sign-in, and turned off", async ({ page, server, scripts }) => {
  test.setTimeout(180_000);
  await enter(page, server, scripts);
  let secret = "";
  let recovery: string[] = [];

  await test.step("a code of the app turns it on", async () => {
    await page.goto("/account/security");
    await alive(page, scripts);
    await page.getByRole("button", { name: "Set up two-step sign-in" }).click();
    await page.waitForURL("**/account/security/two-step");
    await alive(page, scripts);
    await expect(page.getByRole("img", { name: "QR code for an authenticator app" })).toBeVisible();
    secret = (await page.locator(".reveal-value code").textContent()) ?? "";
    expect(secret).toMatch(/^[A-Z2-7]{32}$/);
    await checkPage(page, "two-step");
    await shot(page, "two-step");

    await page.getByLabel("Code", { exact: true }).fill(wrongCode(secret));
    await page.getByRole("button", { name: "Turn on two-step sign-in" }).click();
    await expect(page.getByText("This code is not right")).toBeVisible();
    await alive(page, scripts);
    await page.getByLabel("Code", { exact: true }).fill(code(secret));
    await page.getByRole("button", { name: "Turn on two-step sign-in" }).click();
    await page.waitForURL("**/account/security/codes");
  });

  await test.step("recovery codes are shown once", async () => {
    await alive(page, scripts);
    const shown = (await page.locator(".recovery-codes code").textContent()) ?? "";
    recovery = shown.trim().split("\n");
    expect(recovery).toHaveLength(10);
    await checkPage(page, "recovery codes");

    await page.reload();
    await expect(page.getByText("There are no codes to show")).toBeVisible();
    expect(await page.content()).not.toContain(recovery[0]);
    await page.getByRole("link", { name: "Go to security" }).click();
    await expect(page.getByText("10 recovery codes are left.")).toBeVisible();
  });

  await test.step("a sign-in asks for the code, and no page opens before it", async () => {
    await page.context().clearCookies();
    await beginBoth(page, scripts);
    await checkPage(page, "second step");
    const before = await page.request.get("/account", { maxRedirects: 0 });
    expect(before.status()).toBe(303);

    await enterCode(page, scripts, wrongCode(secret));
    await expect(page.getByText("This code is not right")).toBeVisible();
    await expect(page.getByText("Codes depend on the time.")).toBeHidden();
    await alive(page, scripts);
    await enterCode(page, scripts, wrongCode(secret));
    await expect(page.getByText("Codes depend on the time.")).toBeVisible();
    await alive(page, scripts);
    // The one that turned it on works no more; the next one does already.
    await enterCode(page, scripts, code(secret, 1));
    await signedIn(page);
  });

  await test.step("a recovery code works once in place of the code", async () => {
    await page.context().clearCookies();
    await beginBoth(page, scripts);
    await page.getByText("Use a recovery code").click();
    await page.getByLabel("Recovery code").fill(recovery[0]);
    await page.getByRole("button", { name: "Use recovery code" }).click();
    await signedIn(page);
    await alive(page, scripts);
    await expect(page.getByText("9 recovery codes are left.")).toBeVisible();
    await checkPage(page, "security");
    await shot(page, "security");
  });

  await test.step("a code turns it off", async () => {
    const off = page.locator("details", { hasText: "Turn off two-step sign-in" });
    await off.getByText("Turn off two-step sign-in").click();
    await off.getByLabel("Code", { exact: true }).fill(recovery[1]);
    await off.getByRole("button", { name: "Turn off", exact: true }).click();
    await expect(page.getByRole("button", { name: "Set up two-step sign-in" })).toBeVisible();

    await page.context().clearCookies();
    await begin(page, scripts);
    await signedIn(page);
  });
});

test("sessions are listed and ended", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  // In other browsers.
  for (let other = 0; other < 2; other += 1) {
    const answer = await fetch(`${server.url}/api/login/`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ email: person.email, password: person.password }),
    });
    expect(answer.status).toBe(200);
  }
  await page.goto("/account/security");
  await alive(page, scripts);
  await expect(page.getByText("This session", { exact: true })).toBeVisible();
  const table = page.getByRole("table", { name: "Your sessions" });
  const [others, rows] = [table.locator("summary", { hasText: "Actions for" }), table.getByRole("row")];
  const before = await others.count();
  expect(before).toBeGreaterThan(1);
  const shown = await rows.count();
  await others.first().click();
  await table.getByRole("button", { name: "Sign out" }).click();
  await expect(rows).toHaveCount(shown - 1);
  await expect(others).toHaveCount(before - 1);
  await alive(page, scripts);
  await page.getByText("Sign out other sessions").click();
  await page.getByRole("button", { name: "Sign out everywhere else" }).click();
  await expect(others).toHaveCount(0);
  await expect(page.getByText("This session", { exact: true })).toBeVisible();
});

test("changing the password requires the current one", async ({ page, server, scripts }) => {
  const grace = { name: "Grace", email: "grace@weir.example", password: "eight still ponds in March" };
  const chosen = "nine slow otters after dawn";
  const key = await apiKey(page, server, scripts);
  await join(server, key, "@current", grace);
  await forgetSession(page);
  await signIn(page, scripts, grace);
  await page.goto("/account/security");
  await alive(page, scripts);
  for (const [current, said] of [
    ["not the password at all", "This is not the present password of your account."],
    [grace.password, "Password changed"],
  ] as const) {
    await page.getByLabel("Current password", { exact: true }).fill(current);
    await page.getByLabel("New password", { exact: true }).fill(chosen);
    await page.getByRole("button", { name: "Change password" }).click();
    await expect(page.getByText(said)).toBeVisible();
    await alive(page, scripts);
  }
  await forgetSession(page);
  await signIn(page, scripts, { ...grace, password: chosen });
});
