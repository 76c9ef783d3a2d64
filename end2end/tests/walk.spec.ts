// A walk through every page, by the links and buttons that a person would use. With
// scripts it goes through the one document that was loaded first, and each page has its
// data from server functions: `calls.json` keeps which. Without scripts each page is
// loaded. The file is written again with
//
//   WEIR_UPDATE_CALLS=1 npx playwright test walk --project scripts-on

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Locator, Page, Request } from "@playwright/test";
import { alive, authenticatorCode, expect, furnish, person, projectKey, routes, test, UNKNOWN_ID } from "./helpers";

type Calls = Record<string, string[]>;

const CALLS = at("calls.json");
const FUNCTIONS = at("../../app/src/server_fns/");
const PAGES = at("../../docs/pages.md");

/** Functions that begin the use of a passkey. Browsers use them at a host name only: `passkeys.hydrate.spec.ts`. */
const OF_PASSKEYS = /^begin_(adding_)?passkey/;

/** What is shown at an address without a route. */
const NO_ROUTE = "(none)";

function at(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/** The route of an address: of those that fit, the one with the fewest parts left open. */
function routeOf(address: string): string {
  const parts = new URL(address, "http://weir").pathname.split("/");
  const fits = (route: string): boolean => {
    const wanted = route.split("/");
    return wanted.length === parts.length && wanted.every((part, index) => part.startsWith(":") || part === parts[index]);
  };
  const open = (route: string): number => route.split(":").length;
  return routes().filter(fits).sort((one, other) => open(one) - open(other))[0] ?? NO_ROUTE;
}

/** The server functions that return something: what is called for the sake of the answer. */
function readFunctions(): string[] {
  const files = readdirSync(FUNCTIONS, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".rs"));
  const source = files.map((file) => readFileSync(`${FUNCTIONS}${file}`, "utf8")).join("\n");
  const declared = /#\[server\(prefix = "\/_fn", endpoint = "(\w+)"[^\]]*\)\][^{]*?-> Result<([^{]*), UiError> \{/g;
  const found = [...source.matchAll(declared)];
  expect(found.length, "every server function is understood").toBe(source.match(/^#\[server\(/gm)?.length);
  return found.filter(([, , type]) => type !== "()").map(([, name]) => name!);
}

/** Counts what the page requests, and compares what it shows. */
class Walk {
  readonly visited = new Set<string>();
  readonly calls: Calls = {};
  /** Documents that were requested since the last stop. */
  private loads: string[] = [];
  private called: string[] = [];
  /** The same calls with what was asked for. */
  private asked: string[] = [];
  private readonly refused: string[] = [];
  private readonly reads = new Set(readFunctions());
  private readonly underway = new Set<Request>();
  /** What began or ended so far. */
  private changes = 0;

  constructor(
    private readonly page: Page,
    private readonly scripts: boolean,
  ) {
    page.on("request", (request) => {
      if (request.isNavigationRequest() && request.frame() === page.mainFrame()) this.loads.push(`${request.method()} ${request.url()}`);
      const name = functionOf(request);
      if (name) {
        this.called.push(name);
        this.asked.push(`${name} ${request.postData() ?? ""}`);
      }
      if (!name && !isStream(request)) return;
      this.underway.add(request);
      this.changes += 1;
    });
    const ended = (request: Request): void => {
      if (this.underway.delete(request)) this.changes += 1;
    };
    page.on("requestfinished", ended).on("requestfailed", ended);
    page.on("response", (answer) => {
      const request = answer.request();
      const name = functionOf(request);
      if (name && !request.isNavigationRequest() && !answer.ok()) this.refused.push(`${name}: ${answer.status()}`);
      // A stream does not finish, nor does what a form has as its answer: no one reads it.
      if (!name || !this.reads.has(name)) ended(request);
    });
  }

  get main(): Locator {
    return this.page.getByRole("main");
  }

  /** Loads a document, which brings its data along. */
  async begin(path: string, heading: string): Promise<void> {
    this.forget();
    await this.page.goto(path);
    await this.settled();
    await expect(this.page.getByRole("heading", { level: 1 })).toHaveText([heading]);
    expect.soft(this.called, `what the document at ${path} calls`).toEqual([]);
  }

  /** Goes to the page of a route, and notes what it called. */
  async stop(route: string, heading: string, go: () => Promise<void>, shown?: Locator): Promise<void> {
    await this.goTo(route, heading, go, shown);
    expect(this.visited, "one stop for each page").not.toContain(route);
    this.visited.add(route);
    this.note(route);
  }

  /** Goes to a page that has its stop elsewhere. */
  async pass(route: string, heading: string, go: () => Promise<void>): Promise<void> {
    await this.goTo(route, heading, go);
  }

  /** Does something on a page that makes it ask for more, until that is shown. */
  async also(what: string, go: () => Promise<void>, shown: Locator): Promise<void> {
    const route = routeOf(this.page.url());
    this.forget();
    await go();
    await expect(shown).toBeVisible();
    await this.settled();
    this.checkRequests(`${route}: ${what}`);
    this.note(`${route}: ${what}`);
  }

  /** Follows a link in the content. */
  follow(name: string, within = this.main): () => Promise<void> {
    return () => within.getByRole("link", { name, exact: true }).first().click();
  }

  /** Follows a link of the rail. */
  rail(name: string): () => Promise<void> {
    return this.follow(name, this.page.getByRole("navigation", { name: "Main", exact: true }));
  }

  /** Follows a link between related pages. */
  tab(group: string, name: string): () => Promise<void> {
    return this.follow(name, this.page.getByRole("navigation", { name: group, exact: true }));
  }

  /** Follows a link of a menu of the frame. */
  menu(menu: "account" | "switch", name: string): () => Promise<void> {
    return async () => this.follow(name, await this.openMenu(menu))();
  }

  async openMenu(menu: "account" | "switch"): Promise<Locator> {
    const opened = this.page.locator(`details.${menu}`);
    await opened.locator("summary").click();
    return opened;
  }

  press(name: string): () => Promise<void> {
    return () => this.main.getByRole("button", { name, exact: true }).click();
  }

  /**
   * Opens an address that no page of the app links to, but a mail, the terminal, or no one
   * does. With scripts, by a link that is put into the page for it.
   */
  open(address: string): () => Promise<void> {
    return async () => {
      if (!this.scripts) {
        await this.page.goto(address);
        return;
      }
      await this.page.evaluate((href) => {
        const link = document.createElement("a");
        Object.assign(link, { href, id: "walk", textContent: "The walk goes on here" });
        document.getElementById("main")?.append(link);
      }, address);
      await this.page.locator("#walk").click();
      // The frame keeps `main`, and with it what it does not know.
      await this.page.evaluate(() => document.getElementById("walk")?.remove());
    };
  }

  private async goTo(route: string, heading: string, go: () => Promise<void>, shown?: Locator): Promise<void> {
    this.forget();
    await test.step(route, async () => {
      await go();
      // The start leads to a project.
      const wanted = route === "/" ? "/projects/:id" : route;
      await expect.poll(() => routeOf(this.page.url()), { message: `the address of ${route}` }).toBe(wanted);
      const heads = this.page.getByRole("heading", { level: 1 });
      await expect(heads, `the heading of ${route}`).toHaveText([heading]);
      if (shown) await expect(shown).toBeVisible();
      await this.settled();
      expect(await this.page.title(), `the title of ${route}`).toContain(heading);
      await expect(this.page.locator("#main > .failed"), `${route} has its data`).toHaveCount(0);
      this.checkRequests(route);
    });
  }

  private forget(): void {
    this.loads = [];
    this.called = [];
    this.asked = [];
  }

  private checkRequests(what: string): void {
    if (!this.scripts) {
      expect(this.loads.length, `documents that ${what} loads`).toBeGreaterThan(0);
      return;
    }
    expect.soft(this.loads, `documents that ${what} loads`).toEqual([]);
    expect.soft(this.refused.splice(0), `calls of ${what} that failed`).toEqual([]);
    // The viewer is data of the frame as well as of a page.
    const again = this.asked.filter((call, index) => !call.startsWith("get_viewer ") && this.asked.indexOf(call) < index);
    expect.soft(again, `calls of ${what} that were made before`).toEqual([]);
  }

  private note(what: string): void {
    if (this.scripts) this.calls[what] = [...new Set(this.called)].sort();
  }

  /** Waits until no call is on its way, and the last answer has led to none. */
  private async settled(): Promise<void> {
    if (!this.scripts) return;
    await alive(this.page, this.scripts);
    await expect
      .poll(async () => {
        const before = this.changes;
        await this.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));
        return this.underway.size === 0 && this.changes === before;
      }, { message: "calls come to an end", intervals: [0, 20] })
      .toBe(true);
  }
}

/** The name of the server function that a request calls. */
function functionOf(request: Request): string | undefined {
  if (request.method() !== "POST") return undefined;
  return new URL(request.url()).pathname.match(/^\/_fn\/(\w+)$/)?.[1];
}

/** With what arrives live. Once it is open, the page asks for what came before. */
function isStream(request: Request): boolean {
  return request.resourceType() === "eventsource";
}

/** One line for each page. */
function written(calls: Calls): string {
  const lines = Object.keys(calls).sort().map((route) => `  ${JSON.stringify(route)}: ${JSON.stringify(calls[route]).replaceAll(",", ", ")}`);
  return `{\n${lines.join(",\n")}\n}\n`;
}

test("every page is reached from the others, in one document with scripts", async ({ page, server, scripts }) => {
  const walk = new Walk(page, scripts);
  const { main } = walk;

  // The set-up, and a key for the preparations.
  await walk.begin("/login", "Sign in");
  await walk.stop("/setup", "Set up Weir", walk.open(server.setupLink));
  await page.getByLabel("First name").fill(person.name);
  await page.getByLabel("E-mail address").fill(person.email);
  await page.getByLabel("Password", { exact: true }).fill(person.password);
  await page.getByLabel("Organization").fill(person.organization);
  await page.getByLabel("First project").fill(person.project);
  await walk.pass("/projects/:id/start", "Send your first event", walk.press("Set up Weir"));
  const token = await projectKey(page);
  await walk.stop("/account/keys/new", "New API key", walk.follow("Create a read-only API key"));
  await page.getByLabel("Label").fill("Walk");
  await page.locator("input[value=all]").check();
  await walk.stop("/account/keys/reveal", "Your new key", walk.press("Create key"));
  const key = (await page.locator(".reveal-value code").textContent()) ?? "";
  await walk.stop("/account/keys", "API keys", walk.follow("I have stored it"));
  await walk.stop("/account/keys/:id", "API key Walk", walk.follow("Walk"));

  // Before there is an event, a project leads to its start.
  await walk.stop("/organizations", "Organizations", walk.menu("switch", "All organizations"));
  await walk.stop("/projects/:id/start", "Send your first event", walk.follow(person.project));
  await walk.stop("/organizations/:id", "Organization settings", walk.menu("switch", person.organization));
  const made = await furnish(server, key, token);

  // The organization.
  await walk.stop("/organizations/:id/projects/new", "New project", walk.follow("New project"));
  await walk.pass("/organizations/:id", "Organization settings", walk.follow("Back to the organization"));
  await walk.stop("/organizations/:id/members", "Members", walk.tab("Organization", "Members"));
  await walk.stop("/organizations/:id/invites", "Invites", walk.tab("Organization", "Invites"));
  await page.getByLabel("E-mail addresses").fill("linus@weir.example");
  await walk.also("a list is checked", walk.press("Check addresses"), page.getByRole("table", { name: "Preview of invites" }));
  await walk.stop("/organizations/:id/domains", "Domains", walk.tab("Organization", "Domains"));
  await walk.stop("/organizations/:id/domains/:domain", "otter-tea.example", walk.follow("otter-tea.example"));
  await walk.stop("/organizations/:id/domains/:domain/token", "Your new SCIM token", walk.open(`/organizations/${made.organization}/domains/${made.domain}/token`));
  await walk.pass("/organizations/:id/domains/:domain", "otter-tea.example", walk.follow("Go to the domain"));
  await walk.stop("/organizations/:id/activity", "Activity", walk.tab("Organization", "Activity"));

  // Its exports.
  await walk.stop("/organizations/:id/exports", "Exports", walk.rail("Exports"));
  await walk.stop("/organizations/:id/exports/new", "New export", walk.follow("New export"));
  await walk.pass("/organizations/:id/exports", "Exports", walk.tab("Breadcrumb", "Exports"));
  await walk.stop("/organizations/:id/exports/:export", "Nowhere", walk.follow("Nowhere"));
  await walk.stop("/organizations/:id/exports/:export/backfill", "Nowhere", walk.follow("Backfill"));
  await walk.also("a backfill is previewed", walk.press("Preview backfill"), main.getByText("There is nothing to export in this range."));
  await walk.stop("/organizations/:id/exports/:export/settings", "Nowhere", walk.follow("Settings"));
  await walk.stop("/organizations/:id/exports/:export/logs", "Nowhere", walk.follow("Logs"));

  // Its plugins, and one of them in the project.
  await walk.stop("/organizations/:id/plugins/:list", "Destinations", walk.rail("Plugins"));
  await walk.stop("/organizations/:id/plugins/:list/add", "Add destination", walk.follow("Add destination"));
  await walk.pass("/organizations/:id/plugins/:list", "Destinations", walk.follow("Back to Destinations"));
  await walk.stop("/organizations/:id/plugins/:list/:plugin", "Written", walk.follow("Written"));
  await walk.stop("/projects/:id/plugins/new", "Add Written", walk.follow(`Use in ${person.project}`));
  await page.getByLabel("Switch on").uncheck();
  await walk.stop("/projects/:id/plugins/:config", "Written", walk.press("Add to project"));
  await walk.pass("/organizations/:id/plugins/:list/:plugin", "Written", walk.follow("Written"));
  await walk.stop("/organizations/:id/plugins/:list/:plugin/source", "Source", walk.follow("Edit source"));

  // Transformations.
  await walk.stop("/projects/:id/transformations", "Transformations", walk.rail("Transformations"));
  await walk.stop("/projects/:id/transformations/new", "Add transformation", walk.follow("Add transformation"));
  await walk.pass("/projects/:id/transformations", "Transformations", walk.follow("Back to transformations"));
  await walk.stop("/projects/:id/transformations/try", "Try transformations", walk.follow("Try all"));
  const result = main.getByRole("region", { name: "Result" });
  await walk.also("an entered event is tried", walk.press("Try this event"), result);
  await walk.also("a stored event is tried", walk.press("Try stored event"), result);
  await walk.pass("/projects/:id/transformations", "Transformations", walk.follow("Back to transformations"));
  await walk.stop("/projects/:id/transformations/:config", "Bot filter", walk.follow("Bot filter"));

  // What has arrived.
  await walk.stop("/projects/:id/persons", "Persons", walk.rail("Persons"));
  await walk.stop("/projects/:id/persons/:person", "ada", walk.follow("ada"));
  await walk.stop("/projects/:id/groups", "Groups", walk.rail("Groups"));
  await walk.stop("/projects/:id/groups/:type", "Groups", walk.tab("Group types", "company"));
  await walk.stop("/projects/:id/groups/:type/:key", "Acme", walk.follow("Acme"));
  await walk.stop("/projects/:id/web", "Web", walk.rail("Web"));
  await walk.stop("/projects/:id/insights", "Insights", walk.rail("Insights"));
  await walk.stop("/projects/:id/insights/new", "New insight", walk.follow("New insight"));
  await walk.stop("/projects/:id/insights/persons", "Persons behind a number", walk.open("/projects/1/insights/persons?event=page+viewed"));
  await walk.pass("/projects/:id/insights", "Insights", walk.rail("Insights"));
  await walk.stop("/projects/:id/insights/:insight", "Page views", walk.follow("Page views"));
  await walk.stop("/projects/:id/insights/:insight/dashboards", "Dashboards of an insight", walk.follow("Add to a dashboard"));
  await walk.pass("/projects/:id/insights/:insight", "Page views", walk.follow("Back to the insight"));
  await walk.stop("/projects/:id/insights/:insight/alerts", "Alerts", walk.follow("Alerts"));
  await walk.pass("/projects/:id/insights/:insight", "Page views", walk.follow("Back to the insight"));
  await walk.stop("/projects/:id/insights/:insight/subscriptions", "Subscriptions", walk.follow("Subscriptions"));
  await walk.pass("/projects/:id/insights", "Insights", walk.rail("Insights"));
  await walk.stop("/projects/:id/sql", "SQL", walk.tab("Questions", "SQL"));
  await walk.stop("/projects/:id/dashboards", "Dashboards", walk.tab("Questions", "Dashboards"));
  await walk.stop("/projects/:id/dashboards/new", "New dashboard", walk.follow("New dashboard"));
  await walk.pass("/projects/:id/dashboards", "Dashboards", walk.follow("Back to dashboards"));
  await walk.stop("/projects/:id/dashboards/:dashboard", "Growth", walk.follow("Growth"));
  await walk.stop("/projects/:id/dashboards/:dashboard/sharing", "Share links", walk.follow("Share"));
  await walk.stop("/projects/:id/dashboards/:dashboard/subscriptions", "Subscriptions", walk.tab("Dashboard", "Subscriptions"));
  await walk.stop("/projects/:id/dashboards/:dashboard/settings", "Dashboard settings", walk.tab("Dashboard", "Settings"));
  const revealed = `/projects/1/dashboards/${made.dashboard}/sharing/link`;
  await walk.stop("/projects/:id/dashboards/:dashboard/sharing/link", "Your new share link", walk.open(revealed));
  await walk.stop("/projects/:id/definitions", "Event definitions", walk.rail("Event definitions"));
  await walk.stop("/projects/:id/definitions/:event", "page viewed", walk.follow("page viewed"));
  await walk.stop("/projects/:id/health", "Health", walk.rail("Health"));
  await walk.stop("/projects/:id/health/events", "Dropped and altered events", walk.follow("Dropped and altered events"));
  await walk.stop("/projects/:id/migrations", "Migrations", walk.rail("Migrations"));
  await walk.stop("/projects/:id/events", "Events", walk.rail("Events"), scripts ? page.locator(".status-live") : undefined);
  await walk.also("an event is opened", () => main.locator(".row-link").first().click(), main.locator("section.detail"));
  await walk.stop("/projects/:id/events/explore", "Explore events", walk.follow("Explore events"));
  await walk.stop("/projects/:id", "Overview", walk.rail("Overview"));
  await walk.stop("/projects/:id/settings", "Project settings", walk.rail("Project settings"));
  await walk.stop("/projects/:id/settings/keys", "Project keys", walk.tab("Project settings", "Keys"));

  // With scripts the link opens a dialog, whose form leads to the page.
  await walk.stop("/search", "Search", async () => {
    await page.getByRole("banner").getByRole("link", { name: "Search" }).click();
    if (!scripts) return;
    const palette = page.getByRole("dialog", { name: "Find anything" });
    await palette.getByRole("textbox", { name: "Find anything" }).fill("no such thing");
    await expect(palette.getByRole("status")).toContainText("no such thing");
    await page.keyboard.press("Enter");
    await expect(palette).toBeHidden();
  });

  // One's own pages, and those of the instance.
  await walk.stop("/help", "Help", walk.menu("account", "Help"));
  await walk.stop("/help/:page", "Let others sign in", walk.follow("Let others sign in"));
  await walk.stop("/instance", "Instance", walk.menu("account", "Instance"));
  await walk.stop("/instance/organizations", "Organizations of this instance", walk.follow("Organizations of this instance"));
  await walk.stop("/instance/organizations/:organization", `Limits of ${person.organization}`, walk.follow(person.organization));
  await walk.stop("/organizations/new", "New organization", walk.menu("switch", "New organization"));
  await walk.stop("/account", "Account", walk.menu("account", "Account"));
  await walk.stop("/account/preferences", "Preferences", walk.tab("Account", "Preferences"));
  await walk.stop("/account/messages", "Messages", walk.tab("Account", "Messages"));
  await walk.stop("/gallery", "Gallery", walk.open("/gallery"));
  await walk.stop("/login/again", "Confirm your password", walk.open("/login/again?next=/account"));
  await walk.pass("/account", "Account", walk.follow("Go back"));
  await walk.stop("/", "Overview", () => page.getByRole("link", { name: "Weir, start" }).click());
  await walk.stop(NO_ROUTE, "Page not found", walk.open("/nowhere"));
  await walk.pass("/", "Overview", walk.follow("Go to the home page"));

  // A second step at the sign-in.
  await walk.pass("/account", "Account", walk.menu("account", "Account"));
  await walk.stop("/account/security", "Security", walk.tab("Account", "Security"));
  await walk.stop("/account/security/two-step", "Set up two-step sign-in", walk.press("Set up two-step sign-in"));
  const secret = (await page.locator(".reveal-value code").textContent()) ?? "";
  await page.getByLabel("Code", { exact: true }).fill(authenticatorCode(secret));
  await walk.stop("/account/security/codes", "Your recovery codes", walk.press("Turn on two-step sign-in"));
  const [recovery] = ((await page.locator(".recovery-codes code").textContent()) ?? "").trim().split("\n");
  await walk.pass("/account/security", "Security", walk.follow("I have stored them"));

  // What is outside.
  await walk.stop("/login", "Sign in", async () => (await walk.openMenu("account")).getByRole("button", { name: "Sign out" }).click());
  await walk.stop("/reset", "Forgot your password?", walk.follow("Forgot your password?"));
  await walk.stop("/reset/:id", "Set a new password", walk.open(`/reset/${UNKNOWN_ID}?token=x`));
  await walk.stop("/login/link/:id", "Sign in with a link", walk.open(`/login/link/${UNKNOWN_ID}?token=x`));
  await walk.stop("/shared/:token", "Growth", walk.open(`/shared/${made.shared}`));
  await walk.stop("/signup/:id", "Join an organization", walk.open(`/signup/${made.invite}`));
  await walk.stop("/verify_email/:id", "Confirm your address", walk.open(`/verify_email/${UNKNOWN_ID}`));
  await walk.pass("/login", "Sign in", walk.follow("Go to the sign-in"));
  await page.getByLabel("E-mail address").fill(person.email);
  await page.getByLabel("Password", { exact: true }).fill(person.password);
  await walk.stop("/login/2fa", "Enter your code", walk.press("Sign in"));
  await main.getByText("Use a recovery code").click();
  await page.getByLabel("Recovery code").fill(recovery ?? "");
  await walk.pass("/projects/:id", "Overview", walk.press("Use recovery code"));

  // Not only the first document does.
  if (scripts) await walk.begin(`/organizations/${made.organization}/invites`, "Invites");

  const visited = [...walk.visited].filter((route) => route !== NO_ROUTE);
  expect(visited.sort(), "every route of app.rs is visited").toEqual(routes().sort());
  const listed = [...readFileSync(PAGES, "utf8").matchAll(/^\| [^`]* \| `([^`]+)`/gm)].map(([, address]) => address!);
  const listedRoutes = new Set(listed.map(routeOf));
  // The start leads to another page.
  const unlisted = routes().filter((route) => route !== "/" && !listedRoutes.has(route));
  expect.soft(unlisted, "routes that pages.md does not list; pages.mjs writes it").toEqual([]);
  expect(listed.filter((address) => !walk.visited.has(routeOf(address))), "pages of pages.md without a stop").toEqual([]);

  if (!scripts) return;
  if (process.env.WEIR_UPDATE_CALLS) writeFileSync(CALLS, written(walk.calls));
  expect.soft(walk.calls, "the calls of each page, see calls.json").toEqual(JSON.parse(readFileSync(CALLS, "utf8")));
  const called = new Set(Object.values(walk.calls).flat());
  expect(readFunctions().filter((name) => !called.has(name) && !OF_PASSKEYS.test(name)), "read functions that no page calls").toEqual([]);
});
