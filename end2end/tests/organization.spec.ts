// An organization and its people: settings, inviting, levels, leaving, and what
// of all that is in the activity log.

import type { Page } from "@playwright/test";
import { HOME, alive, apiKey, call, checkPage, enter, expect, join, openMenu, person, save, type Server, shot, test } from "./helpers";

const grace = { name: "Grace", email: "grace@weir.example", password: "nine slow otters in a barn" };

/** The first organization, and a key for its API. */
async function organization(page: Page, server: Server, scripts: boolean): Promise<{ key: string; home: string }> {
  const key = await apiKey(page, server, scripts);
  return { key, home: (await call(server, key, "GET", "/api/organizations/@current/")).id };
}

/** Opens a page of the organization. */
async function open(page: Page, scripts: boolean, home: string, path: string): Promise<void> {
  await page.goto(`/organizations/${home}${path}`);
  await alive(page, scripts);
}

/** The only other member of the organization. */
async function onlyMember(server: Server, key: string, home: string, who: typeof grace): Promise<string> {
  const members = `/api/organizations/${home}/members/`;
  for (const { user } of (await call(server, key, "GET", members)).results) {
    if (user.email !== person.email) await call(server, key, "DELETE", `${members}${user.uuid}/`);
  }
  return join(server, key, home, who);
}

const row = (page: Page, text: string) => page.getByRole("row").filter({ hasText: text });

test("settings are saved section by section", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/organizations");
  await alive(page, scripts);
  await expect(page.getByText("Current", { exact: true })).toBeVisible();
  await checkPage(page, "organizations");
  await page.getByRole("main").getByRole("link", { name: person.organization }).click();
  await page.waitForURL("**/organizations/*");
  await alive(page, scripts);
  await expect(page.getByRole("navigation", { name: "Organization", exact: true })).toMatchAriaSnapshot(`
    - navigation "Organization":
      - link "General"
      - link "Members"
      - link "Invites"
      - link "Domains"
      - link "Activity"
  `);
  await expect(page.getByText(/This is your only organization/)).toBeVisible();
  await page.getByLabel("Notify members by mail when a member joins").uncheck();
  await save(page, "Save mail setting");
  await page.reload();
  await alive(page, scripts);
  await expect(page.getByLabel("Notify members by mail when a member joins")).not.toBeChecked();
  // The preview changes nothing.
  await page.locator("summary", { hasText: "Require two-step sign-in" }).click();
  await expect(page.getByText("One member does not use two-step sign-in:")).toBeVisible();
  await expect(page.getByText(`${person.name} (${person.email})`)).toBeVisible();
  await checkPage(page, "organization");
  await shot(page, "organization");
});

test("a pasted list is previewed and sent, and an invite is accepted", async ({ page, server, scripts, browser }) => {
  const { home } = await organization(page, server, scripts);
  await open(page, scripts, home, "/invites");
  await expect(page.getByText("No pending invite")).toBeVisible();
  await expect(page.getByText(/Mail is not set up on this instance/)).toBeVisible();
  await page
    .getByLabel("E-mail addresses")
    .fill(`Grace Hopper <${grace.email}>, linus@weir.example\n${person.email}\nno-address\nLINUS@weir.example`);
  await page.getByRole("button", { name: "Check addresses" }).click();
  await page.waitForURL("**/invites?people=*");
  await alive(page, scripts);
  await expect(row(page, grace.email)).toContainText("Will be invited");
  await expect(row(page, person.email)).toContainText("Is a member already");
  await expect(row(page, "no-address")).toContainText("Not a valid address");
  await expect(row(page, "LINUS@weir.example").last()).toContainText("Listed twice");
  await checkPage(page, "preview of invites");
  await shot(page, "invites-preview");
  const message = page.getByLabel("Message", { exact: true });
  await expect(message).toHaveAccessibleDescription("Optional. It is shown on the page that the link opens.");
  await message.fill("Have a look.");
  await page.getByRole("button", { name: "Send invites" }).click();
  await page.waitForURL(`**/organizations/${home}/invites`);
  await alive(page, scripts);
  await expect(row(page, grace.email).last()).toContainText("Not mailed");
  await checkPage(page, "invites");
  await shot(page, "invites");

  // The links are shown once.
  const link = (await row(page, grace.email).locator("code").first().textContent()) ?? "";
  expect(link).toContain("/signup/");
  await page.reload();
  await alive(page, scripts);
  await expect(page.getByText("/signup/")).toHaveCount(0);
  const theirs = await browser.newContext({ baseURL: server.url, javaScriptEnabled: scripts });
  const other = await theirs.newPage();
  await other.goto(link);
  await alive(other, scripts);
  await expect(other.getByText("Have a look.")).toBeVisible();
  await expect(other.getByLabel("First name")).toHaveValue(grace.name);
  await other.getByLabel("Password", { exact: true }).fill(grace.password);
  await other.getByRole("button", { name: "Create account and join" }).click();
  await other.waitForURL(HOME);
  // A plain member sees the settings, and who can change them.
  await other.goto(`/organizations/${home}`);
  await expect(other.getByText("Administrators and owners can change this.").first()).toBeVisible();
  await expect(other.getByRole("button", { name: "Save name" })).toHaveCount(0);
  await theirs.close();

  await page.reload();
  await alive(page, scripts);
  await expect(row(page, grace.email)).toHaveCount(0);
  // The other one gets another link, and is then withdrawn.
  await openMenu(page, "linus@weir.example");
  await page.getByRole("button", { name: "New link..." }).click();
  await page.getByRole("button", { name: "Make new link" }).click();
  await expect(row(page, "linus@weir.example").locator("code").first()).toContainText("/signup/");
  await alive(page, scripts);
  await openMenu(page, "linus@weir.example");
  await page.getByRole("button", { name: "Revoke..." }).click();
  await page.getByRole("button", { name: "Revoke invite" }).click();
  await expect(page.getByText("No pending invite")).toBeVisible();
});

test("members: search, level, removal", async ({ page, server, scripts }) => {
  const barbara = { ...grace, name: "Barbara", email: "barbara@weir.example" };
  const { key, home } = await organization(page, server, scripts);
  await onlyMember(server, key, home, barbara);
  await open(page, scripts, home, "/members");
  await expect(row(page, person.email)).toContainText("You");
  await expect(page.getByText(/Owners cannot leave/)).toBeVisible();
  await checkPage(page, "members");
  await shot(page, "members");
  // A search leads to the member, not to all of them.
  await page.goto(`/search?q=${barbara.email}`);
  await page.getByRole("list", { name: "Members" }).getByRole("link").click();
  await page.waitForURL("**/members?search=*");
  await expect(row(page, barbara.email)).toBeVisible();
  await expect(row(page, person.email)).toHaveCount(0);
  await open(page, scripts, home, "/members?search=unknown");
  await expect(page.getByText("Nothing matches the filter: unknown")).toBeVisible();
  await page.getByRole("link", { name: "Clear filters" }).click();
  await expect(row(page, barbara.email)).toBeVisible();
  await alive(page, scripts);
  await openMenu(page, "Barbara");
  await page.getByRole("button", { name: "Change level..." }).click();
  await page.getByLabel("Level of Barbara", { exact: true }).selectOption({ label: "Administrator" });
  await page.getByRole("button", { name: "Change level", exact: true }).click();
  await expect(page.getByText("Barbara is an administrator now.").first()).toBeVisible();
  await expect(page.getByLabel("Level of Barbara", { exact: true })).toHaveValue("8");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.getByLabel("Level of Barbara", { exact: true })).toHaveValue("1");
  await alive(page, scripts);
  const remove = async () => {
    await openMenu(page, "Barbara");
    await page.getByRole("button", { name: "Remove..." }).click();
  };
  const dialog = page.getByRole("dialog", { name: "Remove Barbara?" });
  await remove();
  await expect(dialog.getByText(/They lose access to all projects/)).toBeVisible();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect(dialog).toBeHidden();
  if (scripts) await expect(row(page, barbara.email).locator("summary", { hasText: "Actions for" })).toBeFocused();
  // Without scripts the menu is still open.
  else await page.locator("summary", { hasText: "Actions for Barbara" }).click();
  await remove();
  await dialog.getByRole("button", { name: "Remove member" }).click();
  await expect(row(page, barbara.email)).toHaveCount(0);
  await expect(page.getByText("Only you so far")).toBeVisible();
});

test("activity: filter, link, file", async ({ page, server, scripts }) => {
  const { key, home } = await organization(page, server, scripts);
  const path = `/api/organizations/${home}/`;
  for (const enabled of [true, false]) await call(server, key, "PATCH", path, { is_member_join_email_enabled: enabled });
  const mary = await onlyMember(server, key, home, { ...grace, name: "Mary", email: "mary@weir.example" });
  await call(server, key, "PATCH", `${path}members/${mary}/`, { level: 8 });
  await open(page, scripts, home, "/activity");
  await expect(row(page, "Mail when a member joins").first()).toContainText("Yes → No");
  await checkPage(page, "activity");
  await shot(page, "activity");
  await page.getByLabel("Kind").selectOption({ label: "Member" });
  if (!scripts) await page.getByRole("button", { name: "Filter" }).click();
  await page.waitForURL("**/activity?*kind=OrganizationMembership*");
  await alive(page, scripts);
  await expect(row(page, "Mail when a member joins")).toHaveCount(0);
  await expect(row(page, "Level").first()).toContainText(person.name);
  const file = await page.getByRole("link", { name: "Download CSV" }).getAttribute("href");
  const csv = await page.request.get(file ?? "");
  expect(csv.headers()["content-type"]).toContain("text/csv");
  const text = await csv.text();
  expect(text).toContain('"OrganizationMembership"');
  expect(text).not.toContain('"OrganizationInvite"');
  // A change has an address of its own.
  await row(page, "Level").first().getByRole("link").first().click();
  await page.waitForURL("**/activity?entry=*#*");
  await expect(page.getByRole("row")).toHaveCount(2);
  await open(page, scripts, home, "/activity?to=2000-01-01");
  await expect(page.getByText(/Nothing matches the filter/)).toBeVisible();
});

test("a long value opens in the activity log", async ({ page, server, scripts }) => {
  const { home } = await organization(page, server, scripts);
  const long = `${"l".repeat(60)}@${"o".repeat(60)}.example`;
  await open(page, scripts, home, `/invites?people=${encodeURIComponent(long)}`);
  await page.getByRole("button", { name: "Send invites" }).click();
  await page.waitForURL(`**/organizations/${home}/invites`);
  await open(page, scripts, home, "/activity?kind=OrganizationInvite");
  const value = row(page, long).locator("details");
  await value.locator("summary").click();
  expect(await value.innerText()).toContain(long);
  await checkPage(page, "activity with a long value");
});
