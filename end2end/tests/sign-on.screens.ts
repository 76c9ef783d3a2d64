// Pictures of the pages of single sign-on, for review; see pages.screens.ts.

import { shot, visit } from "../screens";
import { enterAddress, IdentityProvider, visitor, withProviders } from "../sign-on";
import { alive, apiKey, call, expect, newOrganization } from "./helpers";

const test = withProviders();

test("single sign-on", async ({ page, server, names, browser }) => {
  test.setTimeout(300_000);
  const key = await apiKey(page, server, true);
  const { id } = await newOrganization(server, key, "Herons");
  const domains = `/api/organizations/${id}/domains/`;
  const claimed = await call(server, key, "POST", domains, { domain: "herons.example" });
  const path = `${domains}${claimed.id}/`;
  const own = `/organizations/${id}/domains/${claimed.id}`;
  await visit(page, own, "domain-unverified");
  names.records.set("_posthog-challenge.herons.example", claimed.verification_challenge);
  await call(server, key, "POST", `${path}verify/`);
  await page.goto(own);
  await alive(page, true);
  for (const guide of await page.locator("#set-up details > summary").all()) await guide.click();
  await shot(page, "domain-guides");
  const provider = await IdentityProvider.start();
  const { settings } = provider;
  await page.getByLabel("Entity id", { exact: true }).fill(settings.entity_id);
  await page.getByLabel("Single sign-on URL of the identity provider", { exact: true }).fill(settings.sign_in_url);
  await page.getByLabel("X.509 certificate", { exact: true }).fill(settings.certificate);
  await page.getByRole("button", { name: "Save SAML" }).click();
  await expect(page.locator("#saml")).toContainText("CN=idp.example");
  await page.getByRole("link", { name: "Test the connection" }).click();
  await page.waitForURL(`${provider.url}/sso?*`);
  await page.getByLabel("Address").fill("grace@herons.example");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/organizations/"));
  await alive(page, true);
  await shot(page, "domain-tested");
  await visit(page, `/organizations/${id}/domains`, "domains");
  await visit(page, `/organizations/${id}/members`, "members-ways");
  await visit(page, "/account/security", "security-links");
  await visit(page, "/instance", "instance-providers");
  const other = await visitor(browser, server, true);
  await visit(other, "/login", "login-address");
  await enterAddress(other, true, "grace@herons.example");
  await shot(other, "login-saml-offered");
  await call(server, key, "PATCH", path, { sso_enforcement: "saml" });
  await enterAddress(other, true, "grace@herons.example");
  await shot(other, "login-required");
  await visit(other, "/login?error_code=sso_failed", "login-failed");
});
