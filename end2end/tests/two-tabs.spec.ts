// A form that is open in two tabs: each saves its own changes, and a conflict is shown.
// Every form that writes several fields is here.

import type { Page } from "@playwright/test";
import { HOME, addTransformations, alive, apiKey, call, enter, expect, newOrganization, save, sent, signInAfterEnd, test, type Server } from "./helpers";

/** A form: where it is, its button, and two fields with what two tabs enter. */
interface Form {
  path: string;
  button: string;
  first: Change;
  second: Change;
}

interface Change {
  label: string;
  /** A text to write, an option to choose, or whether a box is ticked. */
  value: string | boolean;
}

const field = (page: Page, { label }: Change) => page.getByRole("main").getByLabel(label, { exact: true }).first();

async function enterInto(page: Page, change: Change): Promise<void> {
  const at = field(page, change);
  if (typeof change.value === "boolean") await at.setChecked(change.value);
  else if ((await at.evaluate((element) => element.tagName)) === "SELECT") await at.selectOption(change.value);
  else await at.fill(change.value);
}

async function shows(page: Page, change: Change): Promise<void> {
  const at = field(page, change);
  if (typeof change.value === "boolean") await expect(at).toBeChecked({ checked: change.value });
  else await expect(at).toHaveValue(change.value);
}

/** The forms of each server, for the later tests of the file. */
const prepared = new WeakMap<Server, Form[]>();

/** Makes what the forms are about, once per server. */
async function prepare(page: Page, server: Server, scripts: boolean): Promise<Form[]> {
  const forms = prepared.get(server) ?? (await makeForms(server, await apiKey(page, server, scripts)));
  prepared.set(server, forms);
  return forms;
}

async function makeForms(server: Server, key: string): Promise<Form[]> {
  const { id, project } = await newOrganization(server, key);
  const root = `/api/organizations/${id}`;
  const [config] = await addTransformations(server, key, { id, project }, [{ entry: "bot-filter", enabled: false }]);
  const exported = await call(server, key, "POST", `${root}/batch_exports/`, {
    name: "Nowhere",
    interval: "hour",
    model: "events",
    paused: true,
    destination: { type: "NoOp", config: { arg: "" } },
  });
  const domain = await call(server, key, "POST", `${root}/domains/`, { domain: "otter-tea.example" });
  return [
    {
      path: `/projects/${project}/settings`,
      button: "Save settings",
      first: { label: "Time zone", value: "Europe/Berlin" },
      second: { label: "Name", value: "Race" },
    },
    {
      path: "/account",
      button: "Save name",
      first: { label: "Last name", value: "King" },
      second: { label: "First name", value: "Augusta" },
    },
    {
      path: "/account/preferences",
      button: "Save preferences",
      first: { label: "UTC", value: true },
      second: { label: "Single-key shortcuts", value: false },
    },
    {
      path: `/organizations/${id}/exports/${exported.id}/settings`,
      button: "Save settings",
      first: { label: "Interval", value: "day" },
      second: { label: "Name", value: "Away" },
    },
    {
      path: `/organizations/${id}/domains/${domain.id}`,
      button: "Save SAML",
      first: { label: "Entity id", value: "https://id.example/entity" },
      second: { label: "Single sign-on URL of the identity provider", value: "https://id.example/acs" },
    },
    {
      path: `/projects/${project}/transformations/${config}`,
      button: "Save settings",
      first: { label: "Description (optional)", value: "Robots go" },
      second: { label: "Name", value: "No robots" },
    },
  ];
}

test("each tab saves its own changes", async ({ page, server, scripts }) => {
  test.setTimeout(240_000);
  await enter(page, server, scripts);
  const forms = await prepare(page, server, scripts);
  const other = await page.context().newPage();
  for (const { path, button, first, second } of forms) {
    await test.step(path, async () => {
      await page.goto(path);
      await alive(page, scripts);
      await other.goto(path);
      await alive(other, scripts);
      await enterInto(other, first);
      await saved(other, button);
      await enterInto(page, second);
      await saved(page, button);
      await page.goto(path);
      await shows(page, first);
      await shows(page, second);
    });
  }
});

/** Exports confirm beside the title, all other forms beside the button. */
async function saved(page: Page, button: string): Promise<void> {
  if (!page.url().includes("/exports/")) return save(page, button);
  await sent(page, () => page.getByRole("button", { name: button }).click());
  await expect(page.getByText("Saved the settings of the export.").first()).toBeVisible();
}

test("a conflict is shown, and saving again overwrites the other change", async ({ page, server, scripts }) => {
  test.setTimeout(240_000);
  await enter(page, server, scripts);
  const forms = (await prepare(page, server, scripts)).filter(({ second }) => typeof second.value === "string");
  expect(forms).toHaveLength(5);
  const other = await page.context().newPage();
  for (const { path, button, second } of forms) {
    const change = (value: string): Change => ({ ...second, value });
    await test.step(path, async () => {
      await page.goto(path);
      await alive(page, scripts);
      await other.goto(path);
      await alive(other, scripts);
      await enterInto(other, change("https://one.example"));
      await saved(other, button);
      await enterInto(page, change("https://two.example"));
      await page.getByRole("main").getByRole("button", { name: button }).click();
      const alert = page.getByRole("alert").filter({ hasText: "saved in another tab or by another user" });
      await expect(alert).toContainText(`${second.label} is now \u201chttps://one.example\u201d`);
      await shows(page, change("https://two.example"));
      await alive(page, scripts);
      await saved(page, button);
      await other.goto(path);
      await shows(other, change("https://two.example"));
    });
  }
});

test("a conflict in a file of a plugin is shown", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  const organization = (await call(server, key, "GET", "/api/organizations/@current/")).id;
  await page.goto(`/organizations/${organization}/plugins/transformations/add`);
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("Shout");
  await page.getByRole("button", { name: "Write plugin" }).click();
  await page.waitForURL("**/source");
  const source = `${new URL(page.url()).pathname}?file=index.js`;
  const other = await page.context().newPage();
  await page.goto(source);
  await alive(page, scripts);
  await other.goto(source);
  await alive(other, scripts);
  const code = (word: string) => `export function processEvent(event) {\n  // ${word}\n  return event\n}\n`;
  await other.getByLabel("Text of the file").fill(code("one"));
  await save(other, "Save file");
  await page.getByLabel("Text of the file").fill(code("two"));
  await page.getByRole("button", { name: "Save file" }).click();
  await expect(page.getByRole("alert")).toContainText("The file has another text now");
  await expect(page.getByLabel("Text of the file")).toHaveValue(code("two"));
  await alive(page, scripts);
  await save(page, "Save file");
  await other.goto(source);
  await expect(other.getByLabel("Text of the file")).toHaveValue(code("two"));
});

test("a form of an ended session keeps its input", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  await page.goto("/projects/1/settings");
  await alive(page, scripts);
  await page.getByLabel("Name", { exact: true }).fill("Written in vain");
  await page.getByLabel("Remove client IP addresses from events").check();
  await page.context().clearCookies({ name: "session" });
  await page.getByRole("button", { name: "Save settings" }).click();
  await signInAfterEnd(page, scripts);
  await page.waitForURL("**/projects/1/settings**");
  await expect(page.getByText("This was not saved")).toBeVisible();
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("Written in vain");
  await expect(page.getByLabel("Remove client IP addresses from events")).toBeChecked();
  await alive(page, scripts);
  await save(page, "Save settings");
  await page.goto("/projects/1/settings");
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("Written in vain");
  await expect(page.getByText("This was not saved")).toHaveCount(0);
});

test("a project that a script creates does not change the current project of the browser", async ({ page, server, scripts }) => {
  const key = await apiKey(page, server, scripts);
  await page.goto("/");
  await expect(page).toHaveURL(HOME);
  const before = page.url();
  const organization = (await call(server, key, "GET", "/api/organizations/@current/")).id;
  const made = await call(server, key, "POST", `/api/organizations/${organization}/projects/`, { name: "Of a script" });
  await page.goto("/");
  await expect(page).toHaveURL(before);
  await page.goto("/account");
  await expect(page.locator(`.rail a[href="/projects/${made.id}/events"]`)).toHaveCount(0);
  await expect(page.locator('.rail a[href$="/events"]')).toHaveAttribute("href", new URL(before).pathname.replace(/(\/start)?$/, "/events"));
  expect((await call(server, key, "GET", "/api/users/@me/")).team.id).toBe(made.id);
});
