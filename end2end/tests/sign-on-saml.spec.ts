// An organization moves to single sign-on by the SAML provider of its domain, whose
// connection is tested; and what such a provider may not do.

import type { Page } from "@playwright/test";
import { enterAddress, IdentityProvider, visitor, withProviders } from "../sign-on";
import { alive, call, checkPage, expect, newOrganization, save, shot } from "./helpers";
import { COLLEAGUE, type Home, isRefused, members, moveToSingleSignOn, type Place, type Provider, refusals } from "./sign-on-story";

const test = withProviders();

/** The check that a response of another key fails. */
const SIGNATURE = "The signature is by a certificate of the connection";

/** Signs in at the identity provider, and comes back to Weir. */
async function throughProvider(page: Page, provider: IdentityProvider, email: string, withOtherKey = false): Promise<void> {
  await page.waitForURL(`${provider.url}/sso?*`);
  await page.getByLabel("Address").fill(email);
  await page.getByLabel("Sign with another key").setChecked(withOtherKey);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(({ origin, pathname }) => origin !== provider.url && pathname !== "/complete/saml/");
}

async function saml({ page, server, names, scripts, browser }: Place): Promise<Provider> {
  const own = await IdentityProvider.start();

  async function connect(): Promise<void> {
    const { settings } = own;
    await page.getByLabel("Entity id", { exact: true }).fill(settings.entity_id);
    await page.getByLabel("Single sign-on URL of the identity provider", { exact: true }).fill(settings.sign_in_url);
    await page.getByLabel("X.509 certificate", { exact: true }).fill(settings.certificate);
    await save(page, "Save SAML");
    await expect(page.locator("#saml")).toContainText("CN=idp.example");
    await alive(page, scripts);
  }

  async function tryOut(home: Home): Promise<void> {
    const checks = page.getByRole("table", { name: "Checks of the last test" });
    const check = (name: string) => checks.getByRole("row").filter({ hasText: name });

    await test.step("the test shows which check failed", async () => {
      await page.getByRole("link", { name: "Test the connection" }).click();
      await throughProvider(page, own, COLLEAGUE, true);
      await alive(page, scripts);
      await expect(page).toHaveURL(new RegExp(`${home.domain}(#saml)?$`));
      await expect(page.locator("#saml").getByText("The signature is not by a certificate of the connection.").first()).toBeVisible();
      await expect(check("The assertion is signed with an accepted algorithm")).toContainText("Passed");
      await expect(check(SIGNATURE)).toContainText("Failed");
      await expect(check("The issuer is the identity provider")).toContainText("Not reached");
      // What was sent is shown after its signature is verified.
      await expect(page.locator("#saml")).not.toContainText(COLLEAGUE);
      await checkPage(page, "domain with a failed test");
    });

    await test.step("the test passes, and opens no session", async () => {
      const before = await members(server, home);
      await page.getByRole("link", { name: "Test the connection" }).click();
      await throughProvider(page, own, COLLEAGUE);
      await alive(page, scripts);
      await expect(page.getByText("A new user would become a member and sign in.")).toBeVisible();
      const rows = checks.getByRole("row").filter({ has: page.getByRole("cell") });
      await expect(rows).toHaveCount(19);
      await expect(rows.filter({ hasText: "Passed" })).toHaveCount(19);
      await expect(page.locator("#saml")).toContainText(COLLEAGUE);
      expect(await members(server, home)).toEqual(before);
      await checkPage(page, "domain with a test that passed");
      await shot(page, "saml-test", page.locator("#saml"));
    });
  }

  async function signIn(visiting: Page, email: string): Promise<void> {
    await visiting.getByRole("link", { name: "Continue with single sign-on" }).click();
    await throughProvider(visiting, own, email);
  }

  async function refuse(home: Home): Promise<void> {
    const theirs = await visitor(browser, server, scripts);
    const before = await members(server, home);

    await test.step("a response of another key is refused, and the reason is for administrators", async () => {
      await enterAddress(theirs, scripts, COLLEAGUE);
      await theirs.getByRole("link", { name: "Continue with single sign-on" }).click();
      await throughProvider(theirs, own, COLLEAGUE, true);
      await isRefused(theirs, scripts);
      await checkPage(theirs, "sign-in that a provider failed");
      const refused = await refusals(page, scripts, home.id);
      await expect(refused).toHaveCount(1);
      await expect(refused).toContainText(SIGNATURE);
      await checkPage(page, "activity with a refused sign-in");
    });

    await test.step("a provider of another organization signs in no member of this one", async () => {
      const domain = "geese.example";
      const { id } = await newOrganization(server, home.key, "Geese");
      const other = await connected(home.key, id, domain);
      await enterAddress(theirs, scripts, `linus@${domain}`);
      await theirs.getByRole("link", { name: "Continue with single sign-on" }).click();
      await throughProvider(theirs, other, COLLEAGUE);
      await isRefused(theirs, scripts);
      // The organization of the provider reads why, and the other one is not concerned.
      const refused = await refusals(page, scripts, id);
      await expect(refused).toHaveCount(1);
      await expect(refused).toContainText("The address is not one of this domain.");
      await expect(await refusals(page, scripts, home.id)).toHaveCount(1);
      expect(await members(server, home)).toEqual(before);
      expect(Object.keys(await members(server, { ...home, id }))).not.toContain(COLLEAGUE);
      await other.stop();
    });
    await theirs.context().close();
  }

  /** The identity provider of another organization, with a verified domain. */
  async function connected(key: string, organization: string, domain: string): Promise<IdentityProvider> {
    const provider = await IdentityProvider.start();
    const { settings } = provider;
    const domains = `/api/organizations/${organization}/domains/`;
    const claimed = await call(server, key, "POST", domains, { domain });
    names.records.set(`_posthog-challenge.${domain}`, claimed.verification_challenge);
    const path = `${domains}${claimed.id}/`;
    expect(await call(server, key, "POST", `${path}verify/`)).toMatchObject({ is_verified: true });
    const body = {
      saml_entity_id: settings.entity_id,
      saml_acs_url: settings.sign_in_url,
      saml_x509_cert: settings.certificate,
      jit_provisioning_enabled: true,
    };
    expect(await call(server, key, "PATCH", path, body)).toMatchObject({ has_saml: true, warnings: [{ code: "settings_by_key" }] });
    return provider;
  }

  return {
    label: "single sign-on",
    rule: "The domain's SAML provider only",
    isOfferedToAll: false,
    checksPages: false,
    connect,
    tryOut,
    signIn,
    refuse,
    stop: () => own.stop(),
  };
}

test("an organization requires its identity provider, and the operator lets the owner in", async ({ page, server, names, scripts, browser }) => {
  test.setTimeout(300_000);
  const place = { page, server, names, scripts, browser };
  await moveToSingleSignOn(place, saml(place));
});
