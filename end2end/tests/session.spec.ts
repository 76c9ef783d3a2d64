// Signing in and out, and what is refused.

import { HOME, alive, enter, expect, person, save, signIn, test, visit } from "./helpers";

test("signing out ends the session", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await alive(page, scripts);
  await page.goto("/account");
  await alive(page, scripts);
  await page.getByRole("main").getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL("**/login");
  await page.goto("/account");
  await expect(page).toHaveURL(/\/login\?next=\/account$/);
});

test("a wrong password and an unknown address get the same answer", async ({ page, server, scripts }) => {
  await visit(page, server, scripts);
  for (const [email, password] of [
    [person.email, "not the password at all"],
    ["nobody@weir.example", person.password],
  ] as const) {
    await page.goto("/login");
    await alive(page, scripts);
    await page.getByLabel("E-mail address").fill(email);
    await page.getByLabel("Password", { exact: true }).fill(password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByText("Invalid email or password.")).toBeVisible();
    await expect(page.getByLabel("E-mail address")).toHaveValue(email);
    await expect(page.getByLabel("Password", { exact: true })).toHaveValue("");
  }
});

test("without mail, the page for forgotten passwords refers to the operator", async ({ page, server, scripts }) => {
  await visit(page, server, scripts);
  await page.goto("/login");
  await alive(page, scripts);
  await page.getByRole("link", { name: "Forgot your password?" }).click();
  await page.waitForURL("**/reset");
  await expect(page.getByText(/This instance sends no mail.+Ask the operator of the instance/)).toBeVisible();
});

test("signing in returns to the requested page", async ({ page, server, scripts }) => {
  await visit(page, server, scripts);
  await page.goto("/account/keys?x=1");
  await alive(page, scripts);
  await page.getByLabel("E-mail address").fill(person.email);
  await page.getByLabel("Password", { exact: true }).fill(person.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page).toHaveURL(/\/account\/keys\?x=1$/);
  await expect(page.getByRole("heading", { name: "API keys" })).toBeVisible();
});

test("redirects stay on this site", async ({ page, server, scripts }) => {
  await visit(page, server, scripts);
  for (const next of ["//evil.example", "https://evil.example", "/\\evil.example"]) {
    // A page with a live list would notice, and go to the sign-in automatically.
    await page.goto("about:blank");
    await page.context().clearCookies();
    await page.goto(`/login?next=${encodeURIComponent(next)}`);
    await alive(page, scripts);
    await page.getByLabel("E-mail address").fill(person.email);
    await page.getByLabel("Password", { exact: true }).fill(person.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(HOME);
  }
});

test("names and theme are kept", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/account");
  await alive(page, scripts);
  await page.getByLabel("First name").fill("Grace");
  await save(page, "Save name");
  await expect(page.locator(".account-name")).toHaveText("Grace");
  await page.goto("/account/preferences");
  await alive(page, scripts);
  await page.getByLabel("Dark").check();
  await save(page, "Save theme");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.reload();
  await expect(page.getByLabel("Dark")).toBeChecked();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.goto("/account");
  await expect(page.getByLabel("First name")).toHaveValue("Grace");

  // Another browser learns it at the sign-in.
  await page.context().clearCookies();
  await signIn(page, scripts);
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
});

test("an unknown page is 404, with a link to the start", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  for (const path of ["/nothing", "/projects/999/events", "/organizations/00000000-0000-0000-0000-000000000000"]) {
    const answer = await page.goto(path);
    expect(answer?.status(), path).toBe(404);
    await expect(page.getByRole("heading", { level: 1, name: "Page not found" })).toBeVisible();
    await expect(page.getByRole("link", { name: "Go to the home page" })).toBeVisible();
  }
});

test("other sites cannot make changes, and foreign scripts do not run", async ({ page, server, scripts }) => {
  await visit(page, server, scripts);
  const bare = await page.request.post("/_fn/sign_out", { headers: { "Sec-Fetch-Site": "cross-site" } });
  expect(bare.status()).toBe(403);
  const silent = await fetch(`${server.url}/_fn/sign_in`, { method: "POST", body: "email=a&password=b&next=" });
  expect(silent.status).toBe(403);
  const read = await page.request.get("/_fn/sign_out");
  expect(read.status()).toBe(405);

  const answer = await page.request.get("/login");
  const policy = answer.headers()["content-security-policy"] ?? "";
  expect(policy).toMatch(/script-src 'nonce-[^']+' 'strict-dynamic' 'wasm-unsafe-eval'/);
  expect(policy).not.toContain("unsafe-inline");
  expect(answer.headers()["cache-control"]).toBe("no-store");
  const again = await page.request.get("/login");
  expect(again.headers()["content-security-policy"]).not.toBe(policy);
});
