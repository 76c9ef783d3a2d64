// What scripts add to transformations: dragging a step to another place.

import { alive, call, enter, expect, newKey, test } from "./helpers";

test("steps are reordered by dragging", async ({ page, server, scripts }) => {
  await enter(page, server, scripts);
  const project = /projects\/(\d+)/.exec(page.url())![1];
  const api = await newKey(page, scripts, "Dragging");
  const organization = (await call(server, api, "GET", "/api/organizations/")).results[0].id;
  for (const [at, entry] of ["bot-filter", "location", "user-agent"].entries()) {
    const root = `/api/organizations/${organization}/pipeline_destinations/`;
    const plugin = await call(server, api, "POST", root, { url: `inline:${entry}` });
    const body = { plugin: plugin.id, order: at + 1, enabled: false, config: {} };
    await call(server, api, "POST", `/api/projects/${project}/pipeline_transformation_configs/`, body);
  }
  await page.goto(`/projects/${project}/transformations`);
  await alive(page, scripts);
  const steps = page.locator("ol.steps > li");
  const names = steps.locator("h2");
  await expect(names).toHaveText(["Bot filter", "Location", "User agent"]);
  // The list shows the new order before it is stored.
  const drag = async (from: number, to: number): Promise<void> => {
    const stored = page.waitForResponse("**/_fn/reorder_transformations");
    await steps.nth(from).locator("[data-reorder-handle]").dragTo(steps.nth(to));
    expect((await stored).ok()).toBe(true);
  };
  await drag(2, 0);
  await expect(names).toHaveText(["User agent", "Bot filter", "Location"]);
  await expect(page.locator("form[aria-busy]")).toHaveCount(0);
  await drag(0, 1);
  await expect(names).toHaveText(["Bot filter", "User agent", "Location"]);
  // It is stored.
  await page.reload();
  await expect(names).toHaveText(["Bot filter", "User agent", "Location"]);
});
