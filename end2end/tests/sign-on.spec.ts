// An organization moves to single sign-on by OpenID Connect, with an issuer that the staff
// of the instance adds.

import type { Page } from "@playwright/test";
import { enterAddress, Issuer, visitor, withProviders } from "../sign-on";
import { alive, checkPage, expect } from "./helpers";
import { type Home, moveToSingleSignOn, type Place, type Provider } from "./sign-on-story";

const test = withProviders();

const label = "Corp login";

async function openId({ page, server, scripts, browser }: Place): Promise<Provider> {
  const issuer = await Issuer.start(`${server.url}/complete/corp/`, "grace");

  async function connect({ domain }: Home): Promise<void> {
    await page.goto("/instance");
    await alive(page, scripts);
    await page.locator("summary", { hasText: "Add or change a provider" }).click();
    await page.getByLabel("Name", { exact: true }).fill("corp");
    await page.getByLabel("Shown as").fill(label);
    await page.getByLabel("Issuer", { exact: true }).fill(issuer.url);
    await page.getByLabel("Client id").fill(issuer.clientId);
    await page.getByLabel("Client secret").fill(issuer.clientSecret);
    await page.getByRole("button", { name: "Save provider" }).click();
    await expect(page.getByText("The provider is saved.")).toBeVisible();
    const row = page.getByRole("table", { name: "Providers" }).getByRole("row").filter({ hasText: label });
    await expect(row).toContainText(issuer.url);
    await expect(page.locator("main")).not.toContainText(issuer.clientSecret);
    await checkPage(page, "instance with a provider");
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
    await page.goto(domain);
    await alive(page, scripts);
  }

  async function signIn(visiting: Page): Promise<void> {
    const before = visiting.url();
    await visiting.getByRole("link", { name: `Continue with ${label}` }).click();
    // The issuer asks for nothing.
    await visiting.waitForURL(({ origin, href }) => origin === server.url && href !== before);
  }

  return { label, rule: `${label} only`, isOfferedToAll: true, checksPages: true, connect, signIn, stop: () => issuer.stop() };
}

test("an organization requires its issuer, and the operator lets the owner in", async ({ page, server, names, scripts, browser }) => {
  test.setTimeout(300_000);
  const place = { page, server, names, scripts, browser };
  await moveToSingleSignOn(place, openId(place));
});
