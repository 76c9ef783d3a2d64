// Every page of the map, with an owner and a little of everything: what it says to
// assistive technology, wide and narrow, as kept in `aria/`; what the frame around them
// says; and the pages that are worked in, walked through by keyboard. Once a page or the
// frame has changed, the snapshots are written again with
//
//   npx playwright test map -g "every page" -u

import type { Locator, Page } from "@playwright/test";
import { startServer } from "../server";
import {
  addTransformations,
  alive,
  apiKey,
  call,
  checkOpened,
  checkPage,
  enter,
  expect,
  furnish,
  narrowly,
  newKey,
  projectKey,
  routes,
  type Server,
  STEPS,
  test,
  UNKNOWN_ID,
} from "./helpers";

/** A page: its route, an address, and what the rail shows as the place where one is. */
type Stop = [route: string, path: string, here?: string];

/** Makes one of each, and says where it is. */
async function furnished(page: Page, server: Server, scripts: boolean): Promise<Record<string, string>> {
  const token = await projectKey(page);
  const key = await newKey(page, scripts, "Map");
  await page.goto("/account/keys");
  const keyPage = (await page.locator("li.key h2 a").first().getAttribute("href")) ?? "";
  return { keyPage, ...(await furnish(server, key, token)) };
}

/** What differs from run to run, and what is kept in its place. */
const VARYING: [RegExp, string][] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{6} ?[0-9a-f]{6}\b/g, "ID"],
  // Short ids: eight letters and digits at random.
  [/\/insights\/(?!new\b)[0-9A-Za-z]{8}\b/g, "/insights/ID"],
  [/\bph([cx])_(\.\.\.)?\w+/g, "ph$1_TOKEN"],
  // Keys and proofs: 32 bytes at random, without leading zero digits.
  [/(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{40,43}(?![\w-])/g, "TOKEN"],
  // In quotation marks, where it could be taken for a number or the like.
  [/: "TOKEN"$/gm, ": TOKEN"],
  [/(?<!\d)\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z)?)?/g, "TIME"],
  [/\b\d\d:\d\d(:\d\d(\.\d+)?)?( UTC)?\b/g, "TIME"],
  // The texts of days in answers to questions.
  [/\b\d{1,2}-(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)-\d{4}\b/g, "DATE"],
  [/\b\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4}\b/g, "DATE"],
  [/\b\d+(\.\d+)? (ms|s|min)\b( \d+ s\b)?/g, "DURATION"],
  [/\b\d+(\.\d+)? ([KMGT]i)?B\b/g, "SIZE"],
  [/\b\d+ process(es)?\b/g, "PROCESSES"],
  [/\b127\.0\.0\.1:\d+/g, "HOST"],
  [/\/tmp\/weir-test-\w+/g, "DIRECTORY"],
  [/^( *- definition: )\d+\.\d+\.\d+\S*$/gm, "$1VERSION"],
  // The events of the last whole second.
  [/(heading "Events per second" \[level=2\]\s+- paragraph: "Not limited\. Used: )\d+\b/g, "$1NUMBER"],
];

/** Where scripts add something: buttons that copy or show, words about what is missing. */
const WITH_SCRIPTS = new Set([
  "/setup",
  "/signup/:id",
  "/login",
  "/login/2fa",
  "/login/again",
  "/projects/:id/start",
  "/projects/:id/events",
  "/projects/:id/events/explore",
  "/projects/:id/sql",
  "/projects/:id/insights/new",
  "/projects/:id/insights/:insight",
  "/projects/:id/dashboards/:dashboard",
  "/shared/:token",
  "/projects/:id/health",
  "/projects/:id/transformations",
  "/projects/:id/transformations/:config",
  "/projects/:id/plugins/:config",
  "/projects/:id/plugins/new",
  "/projects/:id/persons/:person",
  "/projects/:id/groups/:type/:key",
  "/projects/:id/settings",
  "/projects/:id/settings/keys",
  "/organizations/:id",
  "/organizations/:id/invites",
  "/organizations/:id/domains/:domain",
  "/organizations/:id/exports/:export/settings",
  "/organizations/:id/plugins/:list/:plugin",
  "/account/security",
  "/account/keys/new",
  "/gallery",
]);

/** What assistive technology finds in a part, without what differs from run to run. */
async function tree(part: Locator): Promise<string> {
  const found = await part.ariaSnapshot();
  return `${VARYING.reduce((text, [what, word]) => text.replace(what, word), found)}\n`;
}

/**
 * What is read on a wide screen, and after it what is read on a phone, where tables name
 * the column in each cell and some parts are left out. What is the same on both is kept
 * once: if it begins to differ, it does not match any more.
 */
async function atBothWidths(page: Page, read: () => Promise<string>): Promise<string> {
  const wide = await read();
  const narrow = await narrowly(page, read);
  return narrow === wide ? wide : `${wide}--- # at 320 px\n${narrow}`;
}

/** The file that keeps the tree of a route. */
function treeOf(route: string, scripts: boolean): string {
  // It leads there.
  if (route === "/") return treeOf("/projects/:id", scripts);
  const parts = route.split("/").filter(Boolean).map((part) => part.replace(":", ""));
  return `${parts.join("-")}${scripts && WITH_SCRIPTS.has(route) ? "-scripts" : ""}.yml`;
}

/** Checks the pages one after the other, and reports all faults together. */
async function visit(page: Page, scripts: boolean, stops: Stop[]): Promise<void> {
  const focusable = page.locator("a[href], button, input, select, textarea, summary, [tabindex='0']");
  for (const [route, path, here] of stops) {
    const status = (await page.goto(path))?.status();
    await alive(page, scripts);
    if (scripts && route === "/projects/:id/events") await expect(page.locator(".status-live")).toBeVisible();
    const found = {
      status,
      headings: await page.locator("h1").count(),
      title: (await page.title()).replace(/^.+ - Weir$/, "ends well"),
      here: (await page.locator(".rail a[aria-current]").allTextContents()).map((text) => text.trim()),
      first: await focusable.first().textContent(),
      outOfOrder: await page.locator("[tabindex]:not([tabindex='0'], [tabindex='-1'])").count(),
    };
    const wanted = {
      status: 200,
      headings: 1,
      title: "ends well",
      here: here ? [here] : [],
      first: "Skip to content",
      outOfOrder: 0,
    };
    expect.soft(found, `${route} at ${path}`).toEqual(wanted);
    // Right after each other: without scripts the page may reload itself.
    const trees = await atBothWidths(page, () => tree(page.getByRole("main")));
    expect.soft(trees, `${route} as it is read`).toMatchSnapshot(treeOf(route, scripts));
    await checkPage(page, "map");
    if (scripts) await checkOpened(page, `${route} at ${path}`);
  }
}

/** With a server for each test: a page is for an instance that is not set up. */
const ofEmptyInstance = test.extend({
  server: async ({}, use) => {
    const server = await startServer();
    await use(server);
    await server.stop();
  },
});

ofEmptyInstance("every page opens, with a title and a marked place in the navigation", async ({ page, server, scripts }) => {
  test.setTimeout(600_000);
  const before: Stop[] = [["/setup", server.setupLink]];
  await visit(page, scripts, before);

  await enter(page, server, scripts);
  const made = await furnished(page, server, scripts);
  const project = "/projects/1";
  const home = `/organizations/${made.organization}`;
  const plugins = `${home}/plugins/destinations`;
  const exported = `${home}/exports/${made.exported}`;
  const within: Stop[] = [
    ["/", "/", "Overview"],
    ["/login/again", "/login/again?next=/account"],
    ["/projects/:id", project, "Overview"],
    ["/projects/:id/start", `${project}/start`, "Overview"],
    ["/projects/:id/events", `${project}/events`, "Events"],
    ["/projects/:id/events/explore", `${project}/events/explore?event=page+viewed`, "Events"],
    ["/projects/:id/web", `${project}/web`, "Web"],
    ["/projects/:id/insights", `${project}/insights`, "Insights"],
    ["/projects/:id/insights/new", `${project}/insights/new?event=page+viewed`, "Insights"],
    ["/projects/:id/insights/persons", `${project}/insights/persons?event=page+viewed`, "Insights"],
    ["/projects/:id/insights/:insight", `${project}/insights/${made.insight}`, "Insights"],
    ["/projects/:id/insights/:insight/dashboards", `${project}/insights/${made.insight}/dashboards`, "Insights"],
    ["/projects/:id/insights/:insight/alerts", `${project}/insights/${made.insight}/alerts`, "Insights"],
    ["/projects/:id/insights/:insight/subscriptions", `${project}/insights/${made.insight}/subscriptions`, "Insights"],
    ["/projects/:id/sql", `${project}/sql?query=SELECT+count()+FROM+events+WHERE+event+%3D+%27gone%27`, "Insights"],
    ["/projects/:id/dashboards", `${project}/dashboards`, "Insights"],
    ["/projects/:id/dashboards/new", `${project}/dashboards/new`, "Insights"],
    ["/projects/:id/dashboards/:dashboard", `${project}/dashboards/${made.dashboard}`, "Insights"],
    ["/projects/:id/dashboards/:dashboard/subscriptions", `${project}/dashboards/${made.dashboard}/subscriptions`, "Insights"],
    ["/projects/:id/dashboards/:dashboard/settings", `${project}/dashboards/${made.dashboard}/settings`, "Insights"],
    ["/projects/:id/dashboards/:dashboard/sharing", `${project}/dashboards/${made.dashboard}/sharing`, "Insights"],
    ["/projects/:id/dashboards/:dashboard/sharing/link", `${project}/dashboards/${made.dashboard}/sharing/link`, "Insights"],
    ["/projects/:id/definitions", `${project}/definitions`, "Event definitions"],
    ["/projects/:id/definitions/:event", `${project}/definitions/page%20viewed`, "Event definitions"],
    ["/projects/:id/health", `${project}/health`, "Health"],
    ["/projects/:id/health/events", `${project}/health/events?code=missing_distinct_id`, "Health"],
    ["/projects/:id/transformations", `${project}/transformations`, "Transformations"],
    ["/projects/:id/transformations/new", `${project}/transformations/new`, "Transformations"],
    ["/projects/:id/transformations/try", `${project}/transformations/try`, "Transformations"],
    ["/projects/:id/transformations/:config", `${project}/transformations/${made.config}`, "Transformations"],
    ["/projects/:id/plugins/new", `${project}/plugins/new?plugin=${made.plugin}`, "Plugins"],
    ["/projects/:id/plugins/:config", `${project}/plugins/${made.config}`, "Plugins"],
    ["/projects/:id/persons", `${project}/persons`, "Persons"],
    ["/projects/:id/persons/:person", `${project}/persons/${made.person}`, "Persons"],
    ["/projects/:id/groups", `${project}/groups`, "Groups"],
    ["/projects/:id/groups/:type", `${project}/groups/company`, "Groups"],
    ["/projects/:id/groups/:type/:key", `${project}/groups/company/acme`, "Groups"],
    ["/projects/:id/migrations", `${project}/migrations`, "Migrations"],
    ["/projects/:id/settings", `${project}/settings`, "Project settings"],
    ["/projects/:id/settings/keys", `${project}/settings/keys`, "Project settings"],
    ["/organizations", "/organizations"],
    ["/organizations/new", "/organizations/new"],
    ["/organizations/:id", home, "Settings"],
    ["/organizations/:id/projects/new", `${home}/projects/new`, "Settings"],
    ["/organizations/:id/members", `${home}/members`, "Members"],
    ["/organizations/:id/invites", `${home}/invites`, "Settings"],
    ["/organizations/:id/domains", `${home}/domains`, "Settings"],
    ["/organizations/:id/domains/:domain", `${home}/domains/${made.domain}`, "Settings"],
    ["/organizations/:id/domains/:domain/token", `${home}/domains/${made.domain}/token`, "Settings"],
    ["/organizations/:id/activity", `${home}/activity?kind=OrganizationDomain`, "Activity"],
    ["/organizations/:id/exports", `${home}/exports`, "Exports"],
    ["/organizations/:id/exports/new", `${home}/exports/new`, "Exports"],
    ["/organizations/:id/exports/:export", exported, "Exports"],
    ["/organizations/:id/exports/:export/backfill", `${exported}/backfill`, "Exports"],
    ["/organizations/:id/exports/:export/settings", `${exported}/settings`, "Exports"],
    ["/organizations/:id/exports/:export/logs", `${exported}/logs`, "Exports"],
    ["/organizations/:id/plugins/:list", plugins, "Plugins"],
    ["/organizations/:id/plugins/:list/add", `${plugins}/add`, "Plugins"],
    ["/organizations/:id/plugins/:list/:plugin", `${plugins}/${made.plugin}`, "Plugins"],
    ["/organizations/:id/plugins/:list/:plugin/source", `${plugins}/${made.written}/source`, "Plugins"],
    ["/search", "/search?q=mill"],
    ["/help", "/help", "Help"],
    ["/help/:page", "/help/sign-in", "Help"],
    ["/instance", "/instance", "Instance"],
    ["/instance/organizations", "/instance/organizations", "Instance"],
    ["/instance/organizations/:organization", `/instance${home}`, "Instance"],
    ["/account", "/account", "Account"],
    ["/account/preferences", "/account/preferences"],
    ["/account/messages", "/account/messages", "Messages"],
    ["/account/security", "/account/security"],
    ["/account/security/two-step", "/account/security/two-step"],
    ["/account/security/codes", "/account/security/codes"],
    ["/account/keys", "/account/keys", "API keys"],
    ["/account/keys/new", "/account/keys/new", "API keys"],
    ["/account/keys/reveal", "/account/keys/reveal", "API keys"],
    ["/account/keys/:id", made.keyPage!, "API keys"],
    ["/gallery", "/gallery"],
  ];
  await visit(page, scripts, within);

  await page.goto("about:blank");
  await page.context().clearCookies();
  const outside: Stop[] = [
    ["/signup/:id", `/signup/${made.invite}`],
    ["/shared/:token", `/shared/${made.shared}`],
    ["/verify_email/:id", `/verify_email/${UNKNOWN_ID}`],
    ["/reset", "/reset"],
    ["/reset/:id", `/reset/${UNKNOWN_ID}?token=x`],
    ["/login", "/login"],
    ["/login/link/:id", `/login/link/${UNKNOWN_ID}?token=x`],
    // Who has not begun to sign in is led to where that begins.
    ["/login/2fa", "/login/2fa?next=/account"],
  ];
  await visit(page, scripts, outside);

  const visited = [...before, ...within, ...outside].map(([route]) => route);
  expect(visited.sort(), "every route of app.rs is visited").toEqual(routes().sort());
});

/** What is around a page. What is in `main` is kept with the page. */
async function frame(page: Page): Promise<string> {
  return (await tree(page.locator("body"))).replace(/^( *)- main:\n(?:\1 +.*\n)*/m, "$1- main\n");
}

/** Opens what the frame keeps closed; on a phone the pages are behind a button. */
async function openMenus(page: Page): Promise<void> {
  const opener = page.getByRole("button", { name: "Menu", exact: true });
  if (await opener.isVisible()) await opener.click();
  // Not by clicks, of which each would close the menu before.
  await page.getByRole("banner").locator("details").evaluateAll((menus) => {
    for (const menu of menus) (menu as HTMLDetailsElement).open = true;
  });
}

test("the frame of every page has the navigation and marks the current place", async ({ page, server, scripts }) => {
  await enter(page, server, scripts, "/account");
  await alive(page, scripts);
  const closed = await atBothWidths(page, () => frame(page));
  expect.soft(closed, "the frame as it is read").toMatchSnapshot("frame.yml");
  const opened = await atBothWidths(page, async () => {
    await openMenus(page);
    return frame(page);
  });
  expect.soft(opened, "the frame with its menus open").toMatchSnapshot("frame-opened.yml");
});

/** What is wrong with what has the focus: nothing, if it is marked and can be seen. */
function faultOfFocus(): string {
  const here = document.activeElement as HTMLElement;
  const tag = here.outerHTML.slice(0, 200);
  // A mark may be around the label of a field that is not drawn itself.
  const marked = [here, here.parentElement].some((one) => {
    const style = one && getComputedStyle(one);
    return style && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  });
  if (!marked) return `not marked: ${tag}`;
  const points = [...here.getClientRects()].flatMap(({ left, right, top, bottom }) => {
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    return [[x, y], [left + 2, top + 2], [right - 2, top + 2], [left + 2, bottom - 2], [right - 2, bottom - 2]];
  });
  const seen = points.some(([x, y]) => {
    const top = document.elementFromPoint(x!, y!);
    return top !== null && top !== document.body && (here.contains(top) || top.contains(here));
  });
  return seen ? "" : `hidden: ${tag}`;
}

test("the focus is marked and never hidden", async ({ page, server, scripts }) => {
  // Tab goes the same way without them.
  test.skip(!scripts, "walked with scripts");
  test.setTimeout(300_000);
  const key = await apiKey(page, server, scripts);
  const { id } = await call(server, key, "GET", "/api/organizations/@current/");
  await addTransformations(server, key, { id, project: 1 }, STEPS);
  const paths = [
    "/projects/1/start",
    "/account/keys/new",
    `/organizations/${id}/exports/new`,
    `/organizations/${id}/exports/new?destination=S3`,
    "/projects/1/transformations",
  ];
  for (const [width, height] of [[1280, 720], [360, 640]] as const) {
    await page.setViewportSize({ width, height });
    for (const path of paths) {
      await page.goto(path);
      await alive(page, scripts);
      await page.getByRole("link", { name: "Skip to content" }).focus();
      let stops = 0;
      for (; stops < 200; stops += 1) {
        await page.keyboard.press("Tab");
        // Past the last one the focus leaves the page.
        if (await page.evaluate(() => document.activeElement === document.body || document.activeElement?.className === "skip")) break;
        expect.soft(await page.evaluate(faultOfFocus), `${path} at ${width} px, stop ${stops + 1}`).toBe("");
      }
      expect(stops, `stops of ${path}`).toBeGreaterThan(4);
      expect(stops, `${path} comes to an end`).toBeLessThan(200);
    }
  }
});
