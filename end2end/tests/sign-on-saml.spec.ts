// The SAML provider of a domain: set-up, test of the connection, sign-in, refusals, and the
// provisioning of its users.

import type { Page } from "@playwright/test";
import { enterAddress, IdentityProvider, type NameServer, visitor, withProviders } from "../sign-on";
import { alive, apiKey, call, checkPage, expect, HOME, newOrganization, save, type Server, shot } from "./helpers";

const test = withProviders();

/** The check that a response of another key fails. */
const SIGNATURE = "The signature is by a certificate of the connection";

/** An organization with a verified domain. */
interface Home {
  key: string;
  id: string;
  project: number;
  domain: string;
  /** The path of the domain in the API. */
  path: string;
  /** The address of its page. */
  page: string;
}

/** Creates an organization that has verified a domain. */
async function owned(page: Page, server: Server, names: NameServer, scripts: boolean, domain: string): Promise<Home> {
  const key = await apiKey(page, server, scripts);
  const { id, project } = await newOrganization(server, key, domain);
  const domains = `/api/organizations/${id}/domains/`;
  const claimed = await call(server, key, "POST", domains, { domain });
  names.records.set(`_posthog-challenge.${domain}`, claimed.verification_challenge);
  const path = `${domains}${claimed.id}/`;
  expect(await call(server, key, "POST", `${path}verify/`)).toMatchObject({ is_verified: true });
  const home = { key, id, project, domain, path, page: `/organizations/${id}/domains/${claimed.id}` };
  // Without scripts the start page reloads itself, which can abort another navigation.
  await expect(async () => {
    await page.goto(home.page);
  }).toPass();
  return home;
}

/** Enters the settings of the identity provider. Colleagues join when they sign in. */
async function connect(server: Server, { key, path }: Home, { settings }: IdentityProvider): Promise<void> {
  const body = {
    saml_entity_id: settings.entity_id,
    saml_acs_url: settings.sign_in_url,
    saml_x509_cert: settings.certificate,
    jit_provisioning_enabled: true,
  };
  expect(await call(server, key, "PATCH", path, body)).toMatchObject({ has_saml: true, warnings: [] });
}

/** Signs in at the identity provider, and comes back to Weir. */
async function throughProvider(page: Page, provider: IdentityProvider, email: string, withOtherKey = false): Promise<void> {
  await page.waitForURL(`${provider.url}/sso?*`);
  await page.getByLabel("Address").fill(email);
  await page.getByLabel("Sign with another key").setChecked(withOtherKey);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(({ origin, pathname }) => origin !== provider.url && pathname !== "/complete/saml/");
}

/** Signs in by SAML from the sign-in page. */
async function signInBySaml(page: Page, scripts: boolean, provider: IdentityProvider, email: string): Promise<void> {
  await enterAddress(page, scripts, email);
  await page.getByRole("link", { name: "Continue with single sign-on" }).click();
  await throughProvider(page, provider, email);
  await page.waitForURL(HOME);
}

/** The addresses of the members, with their levels. */
async function members(server: Server, { key, id }: Home): Promise<Record<string, number>> {
  const { results } = await call(server, key, "GET", `/api/organizations/${id}/members/`);
  return Object.fromEntries(results.map((one: { user: { email: string }; level: number }) => [one.user.email, one.level]));
}

async function isSignedOut(page: Page): Promise<void> {
  const answer = await page.request.get("/account", { maxRedirects: 0 });
  expect([answer.status(), answer.headers().location]).toEqual([303, "/login?next=/account"]);
}

/** What visitors read of every refusal. */
async function isRefused(page: Page, scripts: boolean): Promise<void> {
  await expect(page).toHaveURL(/\/login\?error_code=sso_failed/);
  await alive(page, scripts);
  await expect(page.getByText("Sign-in failed. Try again, or ask an administrator of your organization.")).toBeVisible();
  await expect(page.locator("body")).not.toContainText(/signature|certificate|domain/i);
  await isSignedOut(page);
}

/** Refused sign-ins in the activity of an organization. */
async function refusals(page: Page, scripts: boolean, { id }: Home) {
  await page.goto(`/organizations/${id}/activity?kind=OrganizationDomain`);
  await alive(page, scripts);
  return page.getByRole("table", { name: "Activity" }).getByRole("row").filter({ hasText: "Refused a sign-in" });
}

test("an administrator connects an identity provider, tests it, and requires it", async ({ page, server, names, scripts, browser }) => {
  test.setTimeout(240_000);
  const home = await owned(page, server, names, scripts, "herons.example");
  const provider = await IdentityProvider.start();
  const { settings } = provider;
  const colleague = `grace@${home.domain}`;
  const checks = page.getByRole("table", { name: "Checks of the last test" });
  const check = (name: string) => checks.getByRole("row").filter({ hasText: name });

  await test.step("the settings of the provider are entered", async () => {
    await page.goto(home.page);
    await alive(page, scripts);
    await page.getByLabel("Entity id", { exact: true }).fill(settings.entity_id);
    await page.getByLabel("Single sign-on URL of the identity provider", { exact: true }).fill(settings.sign_in_url);
    await page.getByLabel("X.509 certificate", { exact: true }).fill(settings.certificate);
    await save(page, "Save SAML");
    await expect(page.locator("#saml")).toContainText("CN=idp.example");
    await alive(page, scripts);
    await page.getByLabel(/^People with an address of the domain join/).check();
    await save(page, "Save just-in-time provisioning");
    await alive(page, scripts);
  });

  await test.step("the test shows which check failed", async () => {
    await page.getByRole("link", { name: "Test the connection" }).click();
    await throughProvider(page, provider, colleague, true);
    await alive(page, scripts);
    await expect(page).toHaveURL(new RegExp(`${home.page}(#saml)?$`));
    await expect(page.locator("#saml").getByText("The signature is not by a certificate of the connection.").first()).toBeVisible();
    await expect(check("The assertion is signed with an accepted algorithm")).toContainText("Passed");
    await expect(check(SIGNATURE)).toContainText("Failed");
    await expect(check("The issuer is the identity provider")).toContainText("Not reached");
    // What was sent is shown after its signature is verified.
    await expect(page.locator("#saml")).not.toContainText(colleague);
    await checkPage(page, "domain with a failed test");
  });

  await test.step("the test passes, and opens no session", async () => {
    await page.getByRole("link", { name: "Test the connection" }).click();
    await throughProvider(page, provider, colleague);
    await alive(page, scripts);
    await expect(page.getByText("A new user would become a member and sign in.")).toBeVisible();
    const rows = checks.getByRole("row").filter({ has: page.getByRole("cell") });
    await expect(rows).toHaveCount(19);
    await expect(rows.filter({ hasText: "Passed" })).toHaveCount(19);
    await expect(page.locator("#saml")).toContainText(colleague);
    expect(Object.keys(await members(server, home))).toHaveLength(1);
    await checkPage(page, "domain with a test that passed");
    await shot(page, "saml-test", page.locator("#saml"));
  });

  await test.step("it is required", async () => {
    const section = page.locator("#sign-in");
    await expect(section).toContainText("No member has an address of this domain now.");
    await section.getByLabel("People with an address of the domain sign in").selectOption("saml");
    await save(page, "Save single sign-on");
    await expect(page.locator("#set-up").getByText("To do", { exact: true })).toHaveCount(0);
  });

  await test.step("a colleague signs in and is a member", async () => {
    const theirs = await visitor(browser, server, scripts);
    await enterAddress(theirs, scripts, colleague);
    await expect(theirs.getByText("Your organization signs you in through single sign-on")).toBeVisible();
    await expect(theirs.getByLabel("Password", { exact: true })).toHaveCount(0);
    await signInBySaml(theirs, scripts, provider, colleague);
    expect(await members(server, home)).toMatchObject({ [colleague]: 1 });
    await theirs.goto("/account");
    await expect(theirs.getByLabel("First name")).toHaveValue("Grace");
    await theirs.context().close();
  });

  await test.step("a response of another key is refused, and the reason is for administrators", async () => {
    const theirs = await visitor(browser, server, scripts);
    await enterAddress(theirs, scripts, colleague);
    await theirs.getByRole("link", { name: "Continue with single sign-on" }).click();
    await throughProvider(theirs, provider, colleague, true);
    await isRefused(theirs, scripts);
    await checkPage(theirs, "sign-in that a provider failed");
    await theirs.context().close();
    const refused = await refusals(page, scripts, home);
    await expect(refused).toHaveCount(1);
    await expect(refused).toContainText(SIGNATURE);
    await checkPage(page, "activity with a refused sign-in");
  });
  await provider.stop();
});

test("a colleague whom the provider deactivates is out with the answer", async ({ page, server, names, scripts, browser }) => {
  test.setTimeout(180_000);
  const home = await owned(page, server, names, scripts, "otters.example");
  const provider = await IdentityProvider.start();
  await connect(server, home, provider);
  const colleague = `grace@${home.domain}`;
  const theirs = await visitor(browser, server, scripts);
  await signInBySaml(theirs, scripts, provider, colleague);
  // A page with live data.
  await theirs.goto(`/projects/${home.project}/events`);
  await alive(theirs, scripts);

  await page.goto(home.page);
  await alive(page, scripts);
  await page.getByRole("button", { name: "Create token" }).click();
  await page.waitForURL("**/token");
  await alive(page, scripts);
  const shown = page.locator(".reveal .copy-value code");
  await expect(shown).toHaveCount(2);
  const [token, url] = await shown.allTextContents();
  await checkPage(page, "SCIM token");
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/scim+json" },
      body: body && JSON.stringify(body),
    });
    expect(answer.status, `${method} ${path}`).toBe(200);
    return answer.json();
  };
  const filter = encodeURIComponent(`userName eq "${colleague}"`);
  const { Resources: found } = await ask("GET", `/Users?filter=${filter}`);
  expect(found).toMatchObject([{ userName: colleague, active: true }]);
  const schemas = ["urn:ietf:params:scim:api:messages:2.0:PatchOp"];
  const Operations = [{ op: "replace", path: "active", value: false }];
  expect(await ask("PATCH", `/Users/${found[0].id}`, { schemas, Operations })).toMatchObject({ active: false });

  // The first request after the answer, and the page that is open.
  await isSignedOut(theirs);
  if (!scripts) await theirs.getByRole("link", { name: "Events", exact: true }).first().click();
  await theirs.waitForURL(({ pathname }) => pathname === "/login");
  expect(await members(server, home)).not.toHaveProperty([colleague]);

  await test.step("the provider does not sign the colleague in any more", async () => {
    await enterAddress(theirs, scripts, colleague);
    await theirs.getByRole("link", { name: "Continue with single sign-on" }).click();
    await throughProvider(theirs, provider, colleague);
    await isRefused(theirs, scripts);
    const refused = await refusals(page, scripts, home);
    await expect(refused).toContainText("The user is deactivated.");
    await page.goto(`/organizations/${home.id}/activity?kind=OrganizationMembership`);
    await expect(page.getByText(`Identity provider of ${home.domain}`).first()).toBeVisible();
  });
  await theirs.context().close();
  await provider.stop();
});

test("a provider of another organization signs in no member of this one", async ({ page, server, names, scripts, browser }) => {
  test.setTimeout(180_000);
  const [first, second] = [
    await owned(page, server, names, scripts, "swans.example"),
    await owned(page, server, names, scripts, "geese.example"),
  ];
  const [own, other] = [await IdentityProvider.start(), await IdentityProvider.start()];
  await connect(server, first, own);
  await connect(server, second, other);
  const member = `grace@${first.domain}`;
  const theirs = await visitor(browser, server, scripts);
  await signInBySaml(theirs, scripts, own, member);
  const before = await members(server, first);
  expect(before).toMatchObject({ [member]: 1 });

  const intruder = await visitor(browser, server, scripts);
  await enterAddress(intruder, scripts, `linus@${second.domain}`);
  await intruder.getByRole("link", { name: "Continue with single sign-on" }).click();
  await throughProvider(intruder, other, member);
  await isRefused(intruder, scripts);
  // The organization of the provider reads why, and the other one is not concerned.
  const refused = await refusals(page, scripts, second);
  await expect(refused).toHaveCount(1);
  await expect(refused).toContainText("The address is not one of this domain.");
  await expect(await refusals(page, scripts, first)).toHaveCount(0);
  expect(await members(server, first)).toEqual(before);
  expect(Object.keys(await members(server, second))).not.toContain(member);
  // The member is still the one of its own provider.
  await intruder.context().clearCookies();
  await signInBySaml(intruder, scripts, own, member);
  for (const one of [theirs, intruder]) await one.context().close();
  for (const one of [own, other]) await one.stop();
});
