// Switches show their new state before the server has answered.

import { alive, call, enter, expect, newKey, test } from "./helpers";

test("a switch shows its new state immediately, and then the state of the server", async ({ page, server }) => {
  await enter(page, server, true);
  const key = await newKey(page, true, "Switches");
  const found = await call(server, key, "GET", "/api/organizations/@current/");
  const path = `/api/organizations/${found.id}/batch_exports/`;
  const made = await call(server, key, "POST", path, {
    name: "Switched",
    interval: "day",
    destination: { type: "NoOp", config: {} },
  });
  await page.goto(`/organizations/${found.id}/exports/${made.id}`);
  await alive(page, true);
  const state = page.locator(`#state-${made.id}`);
  await expect(state).toHaveText("Active");

  // Before the server hears of it.
  await page.route("**/_fn/*pause*", () => undefined);
  const pause = page.getByRole("button", { name: "Pause Switched" });
  await pause.click();
  await expect(state).toHaveText("Paused");
  await expect(state).toHaveAttribute("aria-busy", "true");

  // It did not: the page says what is so.
  await page.reload();
  await page.unroute("**/_fn/*pause*");
  await alive(page, true);
  await expect(state).toHaveText("Active");
  await expect(state).not.toHaveAttribute("aria-busy");
  await pause.click();
  await expect(page.getByRole("button", { name: "Unpause Switched" })).toBeVisible();
  await expect(state).toHaveText("Paused");
  await expect(state).not.toHaveAttribute("aria-busy");
});
