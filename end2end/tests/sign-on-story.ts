// The story of an organization that moves to single sign-on: its owner proves the domain,
// connects the provider, and requires it; a colleague joins through it, and is out when the
// provider deactivates them. It is the same with every provider.

import type { Browser, Page } from "@playwright/test";
import { enterAddress, fact, type KeptServer, type NameServer, visitor } from "../sign-on";
import { alive, call, checkPage, type Credentials, expect, HOME, join, newKey, person, save, setUp, shot, test } from "./helpers";

/** The fixtures of a test. */
export interface Place {
  page: Page;
  server: KeptServer;
  names: NameServer;
  scripts: boolean;
  browser: Browser;
}

/** The organization of the story. */
export interface Home {
  /** A key of the owner. */
  key: string;
  id: string;
  /** The address of the page of its domain. */
  domain: string;
}

/** How the story differs from provider to provider. */
export interface Provider {
  /** The name for visitors. */
  label: string;
  /** The rule that requires it, as owners read it. */
  rule: string;
  /** Whether the sign-in page offers it to visitors who have not entered an address. */
  isOfferedToAll: boolean;
  /** Whether this story checks the pages that are alike with all of them. */
  checksPages: boolean;
  /** The owner enters its settings, and comes back to the page of the domain. */
  connect(home: Home): Promise<void>;
  /** The owner tries it, on the page of the domain. */
  tryOut?(home: Home): Promise<void>;
  /** Follows the link of the sign-in page, signs in, and comes back to Weir. */
  signIn(page: Page, email: string): Promise<void>;
  /** What it refuses, when the colleague is a member. */
  refuse?(home: Home): Promise<void>;
  stop(): Promise<void>;
}

export const DOMAIN = "corp.example";
export const COLLEAGUE = `grace@${DOMAIN}`;
const OWNER = { ...person, email: `ada@${DOMAIN}` };
const MEMBER = { name: "Linus", email: `linus@${DOMAIN}`, password: "nine slow otters in a barn" };

/** Most milliseconds between the answer to a deactivation and the end of access. */
const OUT_MAX_MS = 1000;

/** The addresses of the members, with their levels. */
export async function members(server: KeptServer, { key, id }: Home): Promise<Record<string, number>> {
  const { results } = await call(server, key, "GET", `/api/organizations/${id}/members/`);
  return Object.fromEntries(results.map((one: { user: { email: string }; level: number }) => [one.user.email, one.level]));
}

/** Goes through the story in an instance that is not set up. */
export async function moveToSingleSignOn({ page, server, names, scripts, browser }: Place, starting: Promise<Provider>): Promise<void> {
  const [provider] = await Promise.all([starting, setUp(page, server, scripts, OWNER)]);
  const { label } = provider;
  const look = async (at: Page, what: string): Promise<void> => {
    if (provider.checksPages) await checkPage(at, what);
  };
  const key = await newKey(page, scripts, "Preparations");
  const home: Home = { key, id: (await call(server, key, "GET", "/api/organizations/@current/")).id, domain: "" };
  await join(server, key, home.id, MEMBER);
  const theirs = await visitor(browser, server, scripts);
  const { email, password } = MEMBER;
  expect((await theirs.request.post("/api/login/", { data: { email, password } })).status()).toBe(200);
  // A page without live data, which notices the end of its session at the next request.
  await theirs.goto("/account");
  await alive(theirs, scripts);
  const colleague = await visitor(browser, server, scripts);
  const section = page.locator("#sign-in");
  const rules = section.getByLabel("People with an address of the domain sign in");

  await test.step("the domain is verified by its record", async () => {
    await page.goto(`/organizations/${home.id}/domains`);
    await alive(page, scripts);
    await page.getByLabel("Domain", { exact: true }).fill(DOMAIN);
    await page.getByRole("button", { name: "Add domain" }).click();
    await page.waitForURL("**/domains/*");
    await alive(page, scripts);
    const value = await fact(page, "Value").locator("code").textContent();
    names.records.set(`_posthog-challenge.${DOMAIN}`, value ?? "");
    await page.getByRole("button", { name: "Check now" }).click();
    await expect(page.locator("#ownership").getByText("Verified", { exact: true })).toBeVisible();
    home.domain = new URL(page.url()).pathname;
    await alive(page, scripts);
  });

  await test.step("the provider is connected", () => provider.connect(home));

  await test.step("colleagues join", async () => {
    await page.getByLabel(/^People with an address of the domain join/).check();
    await save(page, "Save just-in-time provisioning");
    await alive(page, scripts);
  });

  await test.step("the connection is tried", async () => provider.tryOut?.(home));

  await test.step("the preview names whom the rule locks out, and the name of the domain confirms it", async () => {
    await expect(section).toContainText("It affects 2 members:");
    await expect(section).toContainText("You are among them, and no owner has an address elsewhere.");
    const way = section.getByRole("listitem").filter({ has: page.getByText(provider.rule, { exact: true }) });
    await expect(way).toContainText("no affected member has signed in this way yet");
    await expect(way).toContainText("No owner is known to be able to sign in.");
    await look(page, "domain with a preview");
    if (provider.checksPages) await shot(page, "require-sign-on", section);
    await rules.selectOption({ label: provider.rule });
    const chosen = await rules.inputValue();
    await page.getByRole("button", { name: "Save single sign-on" }).click();
    const confirmed = page.getByLabel("Name of the domain, to require it anyway");
    await expect(confirmed).toHaveAccessibleDescription(/none of them has signed in this way with these settings/);
    await alive(page, scripts);
    await look(page, "domain with a lock-out to confirm");
    await confirmed.fill("elsewhere.example");
    await page.getByRole("button", { name: "Save single sign-on" }).click();
    await expect(confirmed).toHaveAccessibleDescription(/none of them has signed in this way with these settings/);
    await alive(page, scripts);
    await expect(rules).toHaveValue(chosen);
    await confirmed.fill(DOMAIN);
    await page.getByRole("button", { name: "Save single sign-on" }).click();
    // The session of the owner was opened with a password.
    await page.waitForURL(({ pathname }) => pathname === "/login");
  });

  await test.step("sessions and passwords of the domain end", async () => {
    await isSignedOut(theirs);
    await theirs.getByRole("navigation", { name: "Account" }).getByRole("link", { name: "Security" }).click();
    await theirs.waitForURL(({ pathname }) => pathname === "/login");
    for (const who of [OWNER, MEMBER]) expect(await withPassword(server, who)).toEqual([400, "sso_enforced"]);
    await enterAddress(theirs, scripts, MEMBER.email);
    await expect(theirs.getByText(`Your organization signs you in through ${label}`)).toBeVisible();
    await expect(theirs.getByLabel("Password", { exact: true })).toHaveCount(0);
    await look(theirs, "sign-in through a provider");
    await theirs.getByRole("link", { name: "Use another address" }).click();
    await expect(theirs.getByRole("button", { name: "Continue", exact: true })).toBeVisible();
    await expect(theirs.getByRole("link", { name: `Continue with ${label}` })).toHaveCount(provider.isOfferedToAll ? 1 : 0);
    await alive(theirs, scripts);
    await look(theirs, "sign-in with providers");
  });

  await test.step("a colleague signs in for the first time and is a member", async () => {
    await enterAddress(colleague, scripts, COLLEAGUE);
    await provider.signIn(colleague, COLLEAGUE);
    await colleague.waitForURL(HOME);
    expect(await members(server, home)).toEqual({ [OWNER.email]: 15, [MEMBER.email]: 1, [COLLEAGUE]: 1 });
    await colleague.goto("/account/security");
    await alive(colleague, scripts);
    await expect(colleague.getByRole("table", { name: "Linked accounts" })).toContainText(COLLEAGUE);
    await look(colleague, "security with a linked account");
  });

  await test.step("a link of the operator lets the owner in once", async () => {
    const link = await server.signInLink(OWNER.email);
    await page.goto(link);
    await alive(page, scripts);
    await look(page, "sign-in with a link");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(HOME);
    await theirs.goto(link);
    await alive(theirs, scripts);
    await theirs.getByRole("button", { name: "Sign in" }).click();
    await expect(theirs.getByRole("alert")).toBeVisible();
    await expect(theirs).toHaveURL(/\/login\//);
  });

  const lockedOut = section.getByText("Perhaps no owner can sign in.");

  await test.step("the page warns that no owner has signed in this way", async () => {
    await page.goto(home.domain);
    await alive(page, scripts);
    await expect(lockedOut).toBeVisible();
    // The owner saved these settings on the page.
    await expect(page.getByText("An API key saved")).toHaveCount(0);
    await look(page, "domain with a lock-out");
  });

  await test.step("what is wrong is refused", async () => provider.refuse?.(home));

  await test.step("a colleague whom the provider deactivates is out within a second", async () => {
    await page.goto(home.domain);
    await alive(page, scripts);
    await page.getByRole("button", { name: "Create token" }).click();
    await page.waitForURL("**/token");
    await alive(page, scripts);
    const shown = page.locator(".reveal .copy-value code");
    await expect(shown).toHaveCount(2);
    const [token, url] = await shown.allTextContents();
    await look(page, "SCIM token");

    // A page with live data.
    await colleague.goto("/projects/1/events");
    await alive(colleague, scripts);
    if (scripts) await expect(colleague.locator(".status-live")).toBeVisible();
    const left = colleague.waitForURL(({ pathname }) => pathname === "/login", { waitUntil: "commit" });
    const answered = await deactivate(url!, token!, COLLEAGUE);
    await isSignedOut(colleague);
    expect(performance.now() - answered, "ms until a request is refused").toBeLessThan(OUT_MAX_MS);
    if (!scripts) await colleague.getByRole("link", { name: "Events", exact: true }).first().click();
    await left;
    expect(performance.now() - answered, "ms until the open page is left").toBeLessThan(OUT_MAX_MS);
    expect(await members(server, home)).not.toHaveProperty([COLLEAGUE]);
  });

  await test.step("the provider does not sign the colleague in any more", async () => {
    await enterAddress(colleague, scripts, COLLEAGUE);
    await provider.signIn(colleague, COLLEAGUE);
    await isRefused(colleague, scripts);
    await expect((await refusals(page, scripts, home.id)).first()).toContainText("The user is deactivated.");
    await page.goto(`/organizations/${home.id}/activity?kind=OrganizationMembership`);
    await expect(page.getByText(`Identity provider of ${DOMAIN}`).first()).toBeVisible();
  });

  await test.step("the owner takes the rule back", async () => {
    await page.goto(home.domain);
    await alive(page, scripts);
    await rules.selectOption({ label: "Any sign-in method" });
    await save(page, "Save single sign-on");
    await expect(lockedOut).toHaveCount(0);
    expect(await withPassword(server, MEMBER)).toEqual([200, undefined]);
  });
  for (const one of [theirs, colleague]) await one.context().close();
  await provider.stop();
}

/** The status and the code of the answer to a sign-in with a password at the API. */
async function withPassword(server: KeptServer, { email, password }: Credentials): Promise<[number, string | undefined]> {
  const answer = await fetch(`${server.url}/api/login/`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email, password }),
  });
  return [answer.status, (await answer.json()).code];
}

/** Deactivates a user as an identity provider does. Returns the time of the answer. */
async function deactivate(url: string, token: string, email: string): Promise<number> {
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/scim+json" },
      body: body && JSON.stringify(body),
    });
    expect(answer.status, `${method} ${path}`).toBe(200);
    return answer.json();
  };
  const { Resources: found } = await ask("GET", `/Users?filter=${encodeURIComponent(`userName eq "${email}"`)}`);
  expect(found).toMatchObject([{ userName: email, active: true }]);
  const schemas = ["urn:ietf:params:scim:api:messages:2.0:PatchOp"];
  const Operations = [{ op: "replace", path: "active", value: false }];
  const changed = await ask("PATCH", `/Users/${found[0].id}`, { schemas, Operations });
  const answered = performance.now();
  expect(changed).toMatchObject({ active: false });
  return answered;
}

async function isSignedOut(page: Page): Promise<void> {
  const answer = await page.request.get("/account", { maxRedirects: 0 });
  expect([answer.status(), answer.headers().location]).toEqual([303, "/login?next=/account"]);
}

/** What visitors read of every refusal. */
export async function isRefused(page: Page, scripts: boolean): Promise<void> {
  await expect(page).toHaveURL(/\/login\?error_code=sso_failed/);
  await alive(page, scripts);
  await expect(page.getByText("Sign-in failed. Try again, or ask an administrator of your organization.")).toBeVisible();
  await expect(page.locator("body")).not.toContainText(/signature|certificate|domain/i);
  await isSignedOut(page);
}

/** Refused sign-ins in the activity of an organization. */
export async function refusals(page: Page, scripts: boolean, organization: string) {
  await page.goto(`/organizations/${organization}/activity?kind=OrganizationDomain`);
  await alive(page, scripts);
  return page.getByRole("table", { name: "Activity" }).getByRole("row").filter({ hasText: "Refused a sign-in" });
}
