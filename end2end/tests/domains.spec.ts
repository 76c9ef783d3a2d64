// Domains of an organization: claiming, looking for the record, SAML, giving up.

import type { Page } from "@playwright/test";
import { alive, apiKey, call, checkPage, enter, expect, save, type Server, shot, test } from "./helpers";

const domain = "otter-tea.example";

/** Claims a domain, and returns the address of its page. */
async function claim(page: Page, server: Server, scripts: boolean, name: string): Promise<string> {
  const key = await apiKey(page, server, scripts);
  const { id } = await call(server, key, "GET", "/api/organizations/@current/");
  const made = await call(server, key, "POST", `/api/organizations/${id}/domains/`, { domain: name });
  return `/organizations/${id}/domains/${made.id}`;
}

test("a domain is claimed, and name servers are asked", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/organizations");
  await page.getByRole("main").getByRole("heading", { level: 2 }).getByRole("link").first().click();
  await page.waitForURL("**/organizations/*");
  await page.getByRole("navigation", { name: "Organization", exact: true }).getByRole("link", { name: "Domains" }).click();
  await page.waitForURL("**/domains");
  await alive(page, scripts);
  await expect(page.getByText("No domain yet")).toBeVisible();
  await expect(page.getByText("_posthog-challenge.otter-tea.example")).toBeVisible();
  await checkPage(page, "domains");
  await page.getByLabel("Domain", { exact: true }).fill("not a domain");
  await page.getByRole("button", { name: "Add domain" }).click();
  await expect(page.getByLabel("Domain", { exact: true })).toHaveAccessibleDescription(/valid domain/);
  await alive(page, scripts);
  await page.getByLabel("Domain", { exact: true }).fill(domain);
  await page.getByRole("button", { name: "Add domain" }).click();
  await page.waitForURL("**/domains/*");
  await alive(page, scripts);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(domain);
  await expect(page.getByText("Not verified yet")).toBeVisible();
  await expect(page.getByText(`_posthog-challenge.${domain}`)).toBeVisible();
  await page.getByRole("button", { name: "Check now" }).click();
  await expect(page.getByText(/there is no TXT record at this name|no answer from the name servers/)).toBeVisible();
  await checkPage(page, "domain");
  await shot(page, "domain");
});

test("the error for a claimed domain says who can release it", async ({ page, server, scripts }) => {
  const claimed = "claimed.example";
  const address = await claim(page, server, scripts, claimed);
  await page.goto(address.slice(0, address.lastIndexOf("/")));
  await alive(page, scripts);
  await page.getByLabel("Domain", { exact: true }).fill(claimed);
  await page.getByRole("button", { name: "Add domain" }).click();
  const field = page.getByLabel("Domain", { exact: true });
  await expect(field).toHaveAccessibleDescription(/claimed already.*The operator of the instance can release it/);
});

test("rules require the proof, SAML can be configured before", async ({ page, server, scripts }) => {
  const address = await claim(page, server, scripts, "rules.example");
  await page.goto(address);
  await alive(page, scripts);
  // The steps of the set-up, with the guide of each provider.
  for (const provider of ["Okta", "Microsoft Entra", "Google", "Keycloak"]) {
    await page.locator("#set-up summary").filter({ hasText: provider }).click();
    await expect(page.getByRole("link", { name: `Set up ${provider}` })).toBeVisible();
  }
  await expect(page.getByText("No member has an address of this domain now.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Save single sign-on" })).toHaveCount(0);
  await page.getByLabel("Entity id", { exact: true }).fill("https://idp.otter-tea.example");
  await page.getByLabel("X.509 certificate", { exact: true }).fill("no certificate");
  await save(page, "Save SAML");
  // Any text is kept, with a warning below the field.
  await expect(page.getByText(/No member can sign in with it/)).toBeVisible();
  await expect(page.getByLabel("X.509 certificate", { exact: true })).toHaveValue("no certificate");
  await expect(page.getByLabel("Entity id", { exact: true })).toHaveValue("https://idp.otter-tea.example");
  await alive(page, scripts);
  await page.getByLabel("X.509 certificate", { exact: true }).fill("");
  await save(page, "Save SAML");
  await page.reload();
  await expect(page.getByLabel("Entity id", { exact: true })).toHaveValue("https://idp.otter-tea.example");
});

test("settings that an API key saved sign in members alone, until an owner saves them", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const { id } = await call(server, key, "GET", "/api/organizations/@current/");
  const { id: made } = await call(server, key, "POST", `/api/organizations/${id}/domains/`, {
    domain: "by-key.example",
    saml_entity_id: "https://idp.otter-tea.example",
    saml_acs_url: "https://idp.otter-tea.example/sso",
    saml_x509_cert: "no certificate",
  });
  await page.goto(`/organizations/${id}/domains/${made}`);
  await alive(page, scripts);
  const warning = page.locator("#saml").getByText("An API key saved the SAML settings");
  await expect(warning).toContainText("does not sign in administrators, owners");
  await checkPage(page, "domain whose settings a key saved");
  await save(page, "Save SAML");
  await expect(warning).toHaveCount(0);
  await page.reload();
  await expect(page.getByLabel("Entity id", { exact: true })).toHaveValue("https://idp.otter-tea.example");
  await expect(warning).toHaveCount(0);
});

test("a domain is removed by typing its name", async ({ page, server, scripts }) => {
  const removed = "removed.example";
  const address = await claim(page, server, scripts, removed);
  await page.goto(address);
  await alive(page, scripts);
  const button = page.getByRole("button", { name: "Remove domain" });
  await page.getByLabel("Name of the domain").fill("otter-coffee.example");
  if (scripts) await expect(button).toBeDisabled();
  await page.getByLabel("Name of the domain").fill(removed);
  await button.click();
  await page.waitForURL("**/domains");
  await expect(page.getByRole("link", { name: removed, exact: true })).toHaveCount(0);
});
