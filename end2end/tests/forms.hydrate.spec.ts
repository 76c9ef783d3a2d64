// What a form keeps and shows when it is sent without loading the page.

import { alive, call, enter, expect, newKey, save, sent, test, type Server } from "./helpers";
import type { Page } from "@playwright/test";

/** Opens the settings of the organization, and counts the documents that are loaded later. */
async function settings(page: Page, server: Server): Promise<{ api: string; id: string; loads: string[] }> {
  await enter(page, server, true);
  const api = await newKey(page, true, "Forms");
  const { id } = await call(server, api, "GET", "/api/organizations/@current/");
  await page.goto(`/organizations/${id}`);
  await alive(page, true);
  const loads: string[] = [];
  page.on("request", (request) => {
    if (request.isNavigationRequest()) loads.push(request.url());
  });
  return { api, id, loads };
}

test("a saved form shows what was saved, and keeps the focus and the scroll position", async ({ page, server }) => {
  const { loads } = await settings(page, server);
  const name = page.getByLabel("Name", { exact: true });
  const button = page.getByRole("button", { name: "Save name" });
  for (const wanted of ["Heron Tea", "Egret Tea"]) {
    await name.fill(wanted);
    await button.scrollIntoViewIfNeeded();
    const before = await page.evaluate(() => window.scrollY);
    await save(page, "Save name");
    await expect(name).toHaveValue(wanted);
    await expect(page.getByRole("banner").getByText(wanted).first()).toBeVisible();
    await expect(button, "the focus is kept").toBeFocused();
    expect(Math.abs((await page.evaluate(() => window.scrollY)) - before), "the page is not scrolled").toBeLessThan(80);
  }
  await page.getByRole("navigation", { name: "Organization", exact: true }).getByRole("link", { name: "Members" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Members" })).toBeVisible();
  await page.goBack();
  await expect(name).toHaveValue("Egret Tea");
  await page.goForward();
  await expect(page.getByRole("heading", { level: 1, name: "Members" })).toBeVisible();
  expect(loads).toEqual([]);
  await page.reload();
  await page.goBack();
  await alive(page, true);
  await expect(name).toHaveValue("Egret Tea");
});

test("a refused form shows the error at its field, and keeps what was entered elsewhere", async ({ page, server }) => {
  const { loads } = await settings(page, server);
  const name = page.getByLabel("Name", { exact: true });
  const joined = page.getByLabel("Notify members by mail when a member joins");
  const was = await joined.isChecked();
  await joined.setChecked(!was);
  await name.fill("   ");
  await sent(page, () => page.getByRole("button", { name: "Save name" }).click());
  await expect(name).toHaveAttribute("aria-invalid", "true");
  await expect(name).toHaveAccessibleDescription(/blank/);
  await expect(joined).toBeChecked({ checked: !was });
  await name.fill("Crane Tea");
  await save(page, "Save name");
  await expect(name).not.toHaveAttribute("aria-invalid");
  await expect(name).toHaveValue("Crane Tea");
  await expect(joined).toBeChecked({ checked: !was });
  expect(loads).toEqual([]);
});

test("going back shows the page where it was left", async ({ page, server }) => {
  const { loads } = await settings(page, server);
  await page.setViewportSize({ width: 1280, height: 500 });
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
  await expect.poll(() => page.evaluate(() => window.scrollY)).toBeGreaterThan(100);
  const left = await page.evaluate(() => window.scrollY);
  await page.getByRole("navigation", { name: "Main", exact: true }).getByRole("link", { name: "Health" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Health" })).toBeVisible();
  await expect.poll(() => page.evaluate(() => window.scrollY)).toBe(0);
  await page.goBack();
  await expect(page.getByRole("heading", { level: 1, name: "Organization settings" })).toBeVisible();
  await expect.poll(() => page.evaluate(() => window.scrollY)).toBe(left);
  expect(loads).toEqual([]);
});

test("a filter that is typed while the list of the one before loads is kept", async ({ page, server }) => {
  await settings(page, server);
  await page.goto("/projects/1/persons?q=first");
  await alive(page, true);
  const field = page.getByLabel("Distinct id, name, e-mail address, or property = value");
  let answer = () => {};
  const isAnswered = new Promise<void>((resolve) => (answer = resolve));
  await page.route("**/_fn/list_persons**", async (route) => {
    await isAnswered;
    await route.continue();
  });
  await field.fill("second");
  await field.press("Enter");
  await expect(page).toHaveURL(/q=second/);
  await field.fill("third");
  answer();
  await expect(page.getByText('with "second" as a property')).toBeVisible();
  await expect(field).toHaveValue("third");
  await page.getByRole("link", { name: "Clear filters" }).click();
  await expect(page).toHaveURL(/persons$/);
  await expect(field, "what was typed before a link belongs to the page before").toHaveValue("");
});

test.describe("without the code of an area", () => {
  test.use({ expectedOnConsole: /Failed to fetch|^Failed to load resource/ });

  test("the page shows an error, and a retry opens it", async ({ page, server }) => {
    await settings(page, server);
    await page.route("**/*.wasm", (route) => route.abort());
    await page.getByRole("navigation", { name: "Main", exact: true }).getByRole("link", { name: "Migrations" }).click();
    const failed = page.getByRole("alert").filter({ hasText: "could not be loaded" });
    await expect(failed).toBeVisible();
    // The rest of the app still works.
    await expect(page.getByRole("navigation", { name: "Main", exact: true })).toBeVisible();
    await page.unroute("**/*.wasm");
    await failed.getByRole("link", { name: "Load the page again" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Migrations" })).toBeVisible();
  });

  test("links and forms of a first document work", async ({ page, server }) => {
    const { loads } = await settings(page, server);
    await page.route("**/*.wasm", (route) => route.abort());
    await page.reload();
    await page.getByLabel("Name", { exact: true }).fill("Ibis Tea");
    await page.getByRole("button", { name: "Save name" }).click();
    await expect(page.getByText("Saved", { exact: true })).toBeVisible();
    await page.getByRole("navigation", { name: "Organization", exact: true }).getByRole("link", { name: "Members" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Members" })).toBeVisible();
    expect(loads.length).toBeGreaterThan(2);
  });
});

test("a form that waits for a frame does not undo a later link", async ({ page, server }) => {
  await enter(page, server, true, "/projects/1/settings");
  await alive(page, true);
  await page.evaluate(async () => {
    const form = document.querySelector<HTMLFormElement>("#retention form")!;
    const link = document.querySelector<HTMLAnchorElement>('a[href="/projects/1/persons"]')!;
    // After a click the form waits until the browser has drawn its effect.
    document.body.click();
    form.requestSubmit();
    link.click();
    for (let frame = 0; frame < 4; frame++) await new Promise(requestAnimationFrame);
  });
  await expect(page.getByRole("heading", { level: 1, name: "Persons" })).toBeVisible();
  await expect(page).toHaveURL(/\/projects\/1\/persons$/);
});
