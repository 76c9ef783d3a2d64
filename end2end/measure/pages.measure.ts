// Measures what a browser makes of the pages of WEIR_BIN and writes the figures as
// Markdown to WEIR_MEASURED; see scripts/bench --pages.

import { writeFileSync } from "node:fs";
import { expect, test } from "@playwright/test";
import { measureChanges } from "./changes";
import { EFFORT, say } from "./effort";
import { measureArrival, measureTyping } from "./events";
import { begin, fill, lastPersons, manyPersons } from "./fill";
import { measureInteractions } from "./interactions";
import { measureLoads, places } from "./loads";
import { faults, report } from "./report";
import { fileSizes, largestPages } from "./sizes";

test("pages", async ({ browser }) => {
  const target = process.env.WEIR_MEASURED;
  if (!target) throw new Error("WEIR_MEASURED must name the file to write");
  const server = await begin();
  try {
    say("an instance with a few of everything");
    const instance = await fill(browser, server);
    const main = places(instance);

    const loads = await measureLoads(browser, instance, main);
    const answering = await measureInteractions(browser, instance, main);
    const changes = await measureChanges(browser, instance);
    const arrival = await measureArrival(browser, instance);

    await manyPersons(instance);
    const persons = `/projects/${instance.project}/persons`;
    const long = await measureLoads(browser, instance, [
      { name: "Persons, the first 50", path: persons },
      { name: "Persons, the last 50", path: lastPersons(instance) },
      { name: "Persons, a search", path: `${persons}?q=person-${EFFORT.persons / 2}` },
    ]);
    const typing = await measureTyping(browser, instance);

    say("sizes");
    const files = await fileSizes(server.url);
    // Now that there is much to show.
    const [largest, pages] = await largestPages(server.url, instance.cookie, main.map(({ path }) => path));
    const sizes = [...files, ...largest];
    const figures = { browser: browser.version(), sizes, pages, loads, answering, changes, arrival, long, typing };
    writeFileSync(target, report(figures));
    expect(faults(figures), "sizes keep to their limits, and the console stays empty").toEqual([]);
  } finally {
    await server.stop();
  }
});
