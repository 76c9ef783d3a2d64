// A form shows immediately that it is being sent, and is sent once.

import type { Page } from "@playwright/test";
import { alive, enter, expect, test } from "./helpers";

/** Lets a function not answer, and counts its calls. */
async function stay(page: Page, name: string): Promise<() => number> {
  let calls = 0;
  await page.route(`**/_fn/${name}`, () => {
    calls += 1;
  });
  return () => calls;
}

test("a form that is being sent says so and is not sent twice", async ({ page, server }) => {
  await enter(page, server, true, "/account");
  await alive(page, true);
  const calls = await stay(page, "rename_account");
  await page.getByLabel("First name").fill("Grace");
  const form = page.locator("form", { has: page.getByLabel("First name") });
  const button = form.locator("button[type=submit]");
  await button.click();
  await expect(button).toHaveText("Saving name...");
  await expect(button).toBeDisabled();
  await expect(form).toHaveAttribute("aria-busy", "true");
  // Neither the keyboard nor a script sends it again.
  await page.getByLabel("First name").press("Enter");
  await form.evaluate((element) => (element as HTMLFormElement).requestSubmit());
  await expect(form).toHaveAttribute("aria-busy", "true");
  expect(calls()).toBe(1);

  await page.unroute("**/_fn/rename_account");
  await page.reload();
  await alive(page, true);
  await expect(button).toBeEnabled();
  await expect(button).toHaveText("Save name");
});

test.describe("before the code has arrived on a slow line", () => {
  // The code of the page is preloaded, and not used as long as the entry is missing.
  test.use({ expectedOnConsole: /^Failed to load resource|was preloaded using link preload/ });

  test("a pressed link or button shows that a document loads", async ({ page, server }) => {
    await enter(page, server, true, "/account");
    await alive(page, true);
    await page.route("**/*.wasm", () => undefined);
    const html = page.locator("html");
    // Expectations on the page itself would wait for the document that loads, so the page
    // says what is marked while a document loads.
    const marked: string[] = [];
    page.on("console", (message) => {
      const [, text] = /^marked: (.*)$/.exec(message.text()) ?? [];
      if (text) marked.push(text);
    });
    const sayMarks = (): void => {
      const say = (): void => {
        if (!("opening" in document.documentElement.dataset)) return;
        console.log("marked: " + [...document.querySelectorAll("[data-pressed]")].map((element) => element.textContent?.trim()).join());
      };
      new MutationObserver(say).observe(document, { subtree: true, attributeFilter: ["data-pressed", "data-opening"] });
    };
    /** Opens the page as far as its start script runs. The next document waits for the returned call. */
    const open = async (next: string): Promise<() => void> => {
      await page.goto("/account", { waitUntil: "commit" });
      await page.locator("link[rel=preload][as=fetch]").first().waitFor({ state: "attached" });
      await expect(html).not.toHaveAttribute("data-opening");
      await page.evaluate(sayMarks);
      let answer = (): void => undefined;
      const answered = new Promise<void>((done) => (answer = done));
      await page.route(next, async (route) => {
        await answered;
        await route.continue();
      });
      return answer;
    };

    const showPage = await open("**/account/preferences");
    const link = page.getByRole("navigation", { name: "Account", exact: true }).getByRole("link", { name: "Preferences" });
    // These load no document.
    await page.evaluate(() => {
      const pressed = `<a id="here" href="/account#here">Here</a><form><button id="nothing" formmethod="dialog">Nothing</button></form>`;
      document.body.insertAdjacentHTML("beforeend", pressed);
      document.getElementById("here")?.click();
      document.getElementById("nothing")?.click();
    });
    await link.click({ noWaitAfter: true });
    await expect.poll(() => marked).toEqual(["Preferences"]);
    showPage();
    await expect(page.getByRole("heading", { level: 1, name: "Preferences" })).toBeVisible();
    await expect(html).not.toHaveAttribute("data-opening");

    const save = await open("**/_fn/rename_account");
    const button = page.getByRole("button", { name: "Save name" });
    await button.click({ noWaitAfter: true });
    await expect.poll(() => marked).toEqual(["Preferences", "Save name"]);
    save();
    await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  });
});

test("a button without a busy text is disabled as well", async ({ page, server }) => {
  await enter(page, server, true, "/account");
  await alive(page, true);
  const calls = await stay(page, "choose_theme");
  await page.evaluate(() => {
    const form = document.createElement("form");
    form.method = "post";
    form.action = "/_fn/choose_theme";
    form.innerHTML = '<input name="theme" value="dark"><button type="submit" id="plain">Dark</button>';
    document.querySelector("main")?.append(form);
  });
  await page.locator("#plain").click();
  await expect(page.locator("#plain")).toBeDisabled();
  expect(calls()).toBe(1);
});
