// An organization moves to single sign-on by OpenID Connect: the issuer, the domain, who
// joins, who must sign in this way, and the way back of an owner who cannot.

import { enterAddress, fact, Issuer, visitor, withProviders } from "../sign-on";
import { alive, call, checkPage, expect, forgetSession, HOME, join, newKey, person, save, type Server, setUp, shot, signIn } from "./helpers";

const test = withProviders();

const domain = "corp.example";
const owner = { ...person, email: `ada@${domain}` };
const linus = { name: "Linus", email: `linus@${domain}`, password: "nine slow otters in a barn" };
const grace = `grace@${domain}`;

/** The status and the code of the answer to a sign-in with a password at the API. */
async function withPassword(server: Server, { email, password }: { email: string; password: string }): Promise<[number, string]> {
  const answer = await fetch(`${server.url}/api/login/`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email, password }),
  });
  return [answer.status, (await answer.json()).code];
}

test("an organization requires its issuer, and the operator lets the owner in", async ({ page, server, names, scripts, browser }) => {
  test.setTimeout(300_000);
  await setUp(page, server, scripts, owner);
  const key = await newKey(page, scripts, "Preparations");
  const { id } = await call(server, key, "GET", "/api/organizations/@current/");
  await join(server, key, id, linus);
  const theirs = await visitor(browser, server, scripts);
  await signIn(theirs, scripts, linus);
  // A page without live data, which notices the end of its session at the next request.
  await theirs.goto("/account");
  await alive(theirs, scripts);
  const issuer = await Issuer.start(`${server.url}/complete/corp/`, "grace");
  const section = page.locator("#sign-in");

  await test.step("staff adds the issuer", async () => {
    await page.goto("/instance");
    await alive(page, scripts);
    await page.locator("summary", { hasText: "Add or change a provider" }).click();
    await page.getByLabel("Name", { exact: true }).fill("corp");
    await page.getByLabel("Shown as").fill("Corp login");
    await page.getByLabel("Issuer", { exact: true }).fill(issuer.url);
    await page.getByLabel("Client id").fill(issuer.clientId);
    await page.getByLabel("Client secret").fill(issuer.clientSecret);
    await page.getByRole("button", { name: "Save provider" }).click();
    await expect(page.getByText("The provider is saved.")).toBeVisible();
    const row = page.getByRole("table", { name: "Providers" }).getByRole("row").filter({ hasText: "Corp login" });
    await expect(row).toContainText(issuer.url);
    await expect(page.locator("main")).not.toContainText(issuer.clientSecret);
    await checkPage(page, "instance with a provider");
  });

  await test.step("staff reads why a sign-in was refused", async () => {
    const other = await visitor(browser, server, scripts);
    // An answer to a sign-in that this browser did not begin.
    await other.goto("/complete/corp/?code=x&state=y");
    await expect(other).toHaveURL(/\/login\?error_code=sso_failed/);
    await other.context().close();
    await page.goto("/instance");
    await alive(page, scripts);
    const refused = page.getByRole("table", { name: "Refused sign-ins" }).getByRole("row").filter({ hasText: "corp" });
    await expect(refused).toContainText("This browser did not begin this sign-in");
    await checkPage(page, "instance with a refused sign-in");
  });

  await test.step("the domain is verified by its record", async () => {
    await page.goto(`/organizations/${id}/domains`);
    await alive(page, scripts);
    await page.getByLabel("Domain", { exact: true }).fill(domain);
    await page.getByRole("button", { name: "Add domain" }).click();
    await page.waitForURL("**/domains/*");
    await alive(page, scripts);
    const value = await fact(page, "Value").locator("code").textContent();
    names.records.set(`_posthog-challenge.${domain}`, value ?? "");
    await page.getByRole("button", { name: "Check now" }).click();
    await expect(page.locator("#ownership").getByText("Verified", { exact: true })).toBeVisible();
    await alive(page, scripts);
  });

  await test.step("colleagues join", async () => {
    await page.getByLabel(/^People with an address of the domain join/).check();
    await save(page, "Save just-in-time provisioning");
    await alive(page, scripts);
  });

  await test.step("the preview names whom the rule locks out, and the name of the domain confirms it", async () => {
    await expect(section).toContainText("It affects 2 members:");
    await expect(section).toContainText("You are among them, and no owner has an address elsewhere.");
    const way = section.getByRole("listitem").filter({ has: page.getByText("Corp login only", { exact: true }) });
    await expect(way).toContainText("no affected member has signed in this way yet");
    await expect(way).toContainText("No owner is known to be able to sign in.");
    await checkPage(page, "domain with a preview");
    await shot(page, "require-sign-on", section);
    await section.getByLabel("People with an address of the domain sign in").selectOption({ label: "Corp login only" });
    await page.getByRole("button", { name: "Save single sign-on" }).click();
    const confirmed = page.getByLabel("Name of the domain, to require it anyway");
    await expect(confirmed).toHaveAccessibleDescription(/none of them has signed in this way with these settings/);
    await alive(page, scripts);
    await checkPage(page, "domain with a lock-out to confirm");
    await confirmed.fill("elsewhere.example");
    await page.getByRole("button", { name: "Save single sign-on" }).click();
    await expect(confirmed).toHaveAccessibleDescription(/none of them has signed in this way with these settings/);
    await alive(page, scripts);
    await expect(section.getByLabel("People with an address of the domain sign in")).toHaveValue("corp");
    await confirmed.fill(domain);
    await page.getByRole("button", { name: "Save single sign-on" }).click();
    // The session of the owner was opened with a password.
    await page.waitForURL(({ pathname }) => pathname === "/login");
  });

  await test.step("sessions and passwords of the domain end", async () => {
    await theirs.getByRole("navigation", { name: "Account" }).getByRole("link", { name: "Security" }).click();
    await theirs.waitForURL(({ pathname }) => pathname === "/login");
    await enterAddress(theirs, scripts, linus.email);
    await expect(theirs.getByText("Your organization signs you in through Corp login")).toBeVisible();
    await expect(theirs.getByLabel("Password", { exact: true })).toHaveCount(0);
    await checkPage(theirs, "sign-in through a provider");
    expect(await withPassword(server, linus)).toEqual([400, "sso_enforced"]);
    await theirs.getByRole("link", { name: "Use another address" }).click();
    await expect(theirs.getByRole("link", { name: "Continue with Corp login" })).toBeVisible();
    await alive(theirs, scripts);
    await checkPage(theirs, "sign-in with providers");
  });

  await test.step("a colleague signs in for the first time and is a member", async () => {
    const other = await visitor(browser, server, scripts);
    await enterAddress(other, scripts, grace);
    await other.getByRole("link", { name: "Continue with Corp login" }).click();
    await other.waitForURL(HOME);
    const { results } = await call(server, key, "GET", `/api/organizations/${id}/members/`);
    const levels = results.map((one: { user: { email: string }; level: number }) => [one.user.email, one.level]);
    expect(Object.fromEntries(levels)).toEqual({ [owner.email]: 15, [linus.email]: 1, [grace]: 1 });
    await other.goto("/account/security");
    await alive(other, scripts);
    await expect(other.getByRole("table", { name: "Linked accounts" })).toContainText(grace);
    await checkPage(other, "security with a linked account");
    await other.context().close();
  });

  await test.step("a link of the operator lets the owner in once", async () => {
    expect(await withPassword(server, owner)).toEqual([400, "sso_enforced"]);
    const link = await server.signInLink(owner.email);
    await page.goto(link);
    await alive(page, scripts);
    await checkPage(page, "sign-in with a link");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(HOME);
    await theirs.goto(link);
    await alive(theirs, scripts);
    await theirs.getByRole("button", { name: "Sign in" }).click();
    await expect(theirs.getByRole("alert")).toBeVisible();
    await expect(theirs).toHaveURL(/\/login\//);
  });

  await test.step("the owner takes the rule back", async () => {
    await page.goto(`/organizations/${id}/domains`);
    await page.getByRole("main").getByRole("link", { name: domain, exact: true }).click();
    await page.waitForURL("**/domains/*");
    await alive(page, scripts);
    await section.getByLabel("People with an address of the domain sign in").selectOption({ label: "Any sign-in method" });
    await save(page, "Save single sign-on");
    await forgetSession(theirs);
    await enterAddress(theirs, scripts, linus.email);
    await theirs.getByLabel("Password", { exact: true }).fill(linus.password);
    await theirs.getByRole("button", { name: "Sign in", exact: true }).click();
    await theirs.waitForURL(HOME);
  });
  await theirs.context().close();
  await issuer.stop();
});
