// Passkeys with the virtual authenticator of the browser. Browsers use them at a host name
// only, so the tests open the server at `localhost`. They need scripts; what the pages say
// without is a test of the server.

import type { CDPSession, Page } from "@playwright/test";
import { alive, apiKey, call, checkPage, type Credentials, expect, join, newOrganization, openMenu, person, type Server, setUp, shot, test } from "./helpers";

/** A device that keeps passkeys and verifies its user. */
interface Device {
  cdp: CDPSession;
  authenticatorId: string;
}

async function device(page: Page): Promise<Device> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return { cdp, authenticatorId };
}

/** The server at its host name. */
const named = (server: Server): string => server.url.replace("127.0.0.1", "localhost");

/** Signs in with the password at the host name, as far as the page that follows. */
async function signInAt(page: Page, server: Server, next: string, who: Credentials = person): Promise<void> {
  await page.goto(`${named(server)}/login?next=${next}`);
  await alive(page, true);
  await page.getByLabel("E-mail address").fill(who.email);
  await page.getByLabel("Password", { exact: true }).fill(who.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** Adds a passkey, and returns the recovery codes if it is the first one. */
async function add(page: Page, name: string): Promise<string[]> {
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "Add a passkey" }).click();
  await page.waitForURL("**/account/security/codes");
  const shown = (await page.locator(".recovery-codes code").textContent()) ?? "";
  await page.getByRole("link", { name: "I have stored them" }).click();
  await page.waitForURL(({ pathname }) => pathname === "/account/security");
  await alive(page, true);
  return shown.trim().split("\n");
}

async function forget(page: Page): Promise<void> {
  await page.goto("about:blank");
  await page.context().clearCookies();
}

test("a passkey signs in without address and password, and is the second step after the password", async ({ page, server }) => {
  test.setTimeout(180_000);
  await setUp(page, server, true);
  await forget(page);
  const { cdp, authenticatorId } = await device(page);
  let codes: string[] = [];

  await test.step("it is added", async () => {
    await signInAt(page, server, "/account/security");
    await page.waitForURL(({ pathname }) => pathname === "/account/security");
    await alive(page, true);
    codes = await add(page, "Phone");
    expect(codes).toHaveLength(10);
    await expect(page.getByRole("table", { name: "Passkeys" }).getByRole("rowheader", { name: "Phone" })).toBeVisible();
    const { credentials } = await cdp.send("WebAuthn.getCredentials", { authenticatorId });
    expect(credentials).toMatchObject([{ rpId: "localhost", isResidentCredential: true }]);
    await checkPage(page, "security with a passkey");
    await shot(page, "passkeys");
  });

  await test.step("it signs in", async () => {
    await forget(page);
    await page.goto(`${named(server)}/login?next=/account`);
    await alive(page, true);
    await checkPage(page, "sign-in with a passkey");
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await page.waitForURL(({ pathname }) => pathname === "/account");
  });

  await test.step("it is asked for after the password", async () => {
    await forget(page);
    await signInAt(page, server, "/account/security");
    await page.waitForURL(/\/login\/2fa\?/);
    await alive(page, true);
    await expect(page.getByRole("heading", { level: 1, name: "Use your passkey" })).toBeVisible();
    await checkPage(page, "second step with a passkey");
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.waitForURL(({ pathname }) => pathname === "/account/security");
    await alive(page, true);
  });

  await test.step("a device that does not verify its user is refused", async () => {
    await forget(page);
    await cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
    await page.goto(`${named(server)}/login?next=/account`);
    await alive(page, true);
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await expect(page.getByText("No passkey was used. Try again, or use another way.")).toBeVisible();
    await cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: true });
  });

  await test.step("it is renamed and removed", async () => {
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await page.waitForURL(({ pathname }) => pathname === "/account");
    await page.goto(`${named(server)}/account/security`);
    await alive(page, true);
    const table = page.getByRole("table", { name: "Passkeys" });
    await openMenu(page, "Phone");
    await table.getByRole("button", { name: "Rename..." }).click();
    await page.getByLabel("New name of Phone").fill("Old phone");
    await page.getByRole("dialog").getByRole("button", { name: "Rename passkey" }).click();
    await expect(table.getByRole("rowheader", { name: "Old phone" })).toBeVisible();
    await alive(page, true);
    await openMenu(page, "Old phone");
    await table.getByRole("button", { name: "Remove..." }).click();
    const asked = page.getByRole("dialog", { name: "Remove the passkey Old phone?" });
    await asked.getByRole("button", { name: "Remove passkey" }).click();
    await expect(page.getByText("The passkey is removed, and two-step sign-in is off.")).toBeVisible();
    await forget(page);
    await page.goto(`${named(server)}/login?next=/account`);
    await alive(page, true);
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await expect(page.getByText("The passkey was not accepted.")).toBeVisible();
  });
});

test("a passkey alone is the second factor that an organization requires, and a recovery code replaces it", async ({ page, server }) => {
  test.setTimeout(180_000);
  const grace = { name: "Grace", email: "grace@weir.example", password: "eight still ponds in March" };
  const key = await apiKey(page, server, true);
  const { id } = await newOrganization(server, key, "Otters");
  await join(server, key, id, grace);
  await call(server, key, "PATCH", `/api/organizations/${id}/`, { enforce_2fa: true });
  await forget(page);
  await device(page);
  const home = `/organizations/${id}`;
  const opened = page.getByRole("heading", { level: 1, name: "Organization settings" });
  const demand = page.getByText("Two-step sign-in is required by Otters.");
  let codes: string[] = [];

  await test.step("without a factor the pages of the organization do not open", async () => {
    await signInAt(page, server, home, grace);
    await expect(page.getByText("This organization asks its members for two-step sign-in.")).toBeVisible();
    await expect(page.getByLabel("Name", { exact: true })).toHaveCount(0);
    await page.goto(`${named(server)}/account/security`);
    await alive(page, true);
    await expect(demand).toBeVisible();
  });

  await test.step("with a passkey they do", async () => {
    codes = await add(page, "Phone");
    await expect(demand).toHaveCount(0);
    await page.goto(`${named(server)}${home}`);
    await expect(opened).toBeVisible();
  });

  await test.step("a recovery code signs in without the passkey, once", async () => {
    for (const [code, outcome] of [
      [codes[0]!, opened],
      [codes[0]!, page.getByText("This code is not right").first()],
    ] as const) {
      await forget(page);
      await signInAt(page, server, home, grace);
      await page.waitForURL(/\/login\/2fa\?/);
      await alive(page, true);
      await page.getByText("Use a recovery code").click();
      await page.getByLabel("Recovery code").fill(code);
      await page.getByRole("button", { name: "Use recovery code" }).click();
      await expect(outcome).toBeVisible();
    }
  });
});
