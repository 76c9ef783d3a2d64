// What is loaded: the files of the browser side, and the largest page.

import { ask } from "./requests";
import { BUDGETS, type Budget } from "./budgets";

export interface Size {
  what: string;
  /** Bytes that the browser works with. */
  bytes: number;
  /** The same after gzip. */
  gzip: number;
  /** As it was sent to a browser that takes gzip. */
  sent: number;
  budget: Budget;
}

/** The most pages that are measured. */
const MOST = 400;
/** How many of them are reported. */
const SHOWN = 3;

/** The files as this program serves them, by the addresses in its pages. */
export async function fileSizes(url: string): Promise<Size[]> {
  const login = (await ask(`${url}/login`)).text;
  const boot = find(login, /<script[^>]* src="([^"]+)"/);
  const loader = (await ask(url + boot)).text;
  const folder = boot.slice(0, boot.lastIndexOf("/") + 1);
  const files: [string, string, Budget][] = [
    ["wasm entry", folder + find(loader, /"\.\/([^"]+\.wasm)"/), BUDGETS.wasm],
    ["JS glue", folder + find(loader, /"\.\/([^"]+\.js)"/), BUDGETS.glue],
    ["CSS", find(login, /<link rel="stylesheet" href="([^"]+)"/), BUDGETS.css],
    ["icon sprite", "/icons.svg", BUDGETS.icons],
  ];
  const sizes: Size[] = [];
  for (const [what, address, budget] of files) {
    const answer = await ask(url + address);
    if (answer.status !== 200) throw new Error(`${address} was answered with ${answer.status}`);
    sizes.push({ what, budget, ...answer });
  }
  return sizes;
}

/**
 * The largest pages: follows the links of the pages given, one page for each form of
 * address, and says how many it saw.
 */
export async function largestPages(url: string, cookie: string, from: string[]): Promise<[Size[], number]> {
  const waiting = [...from];
  const known = new Set(waiting.map(form));
  const visited: Size[] = [];
  for (let path = waiting.shift(); path && visited.length < MOST; path = waiting.shift()) {
    const answer = await ask(url + path, cookie);
    if (answer.status !== 200 || !answer.type.startsWith("text/html")) continue;
    visited.push({ what: `HTML of \`${form(path)}\``, budget: BUDGETS.html, ...answer });
    for (const link of links(answer.text)) {
      if (known.has(form(link))) continue;
      known.add(form(link));
      waiting.push(link);
    }
  }
  visited.sort((one, other) => other.gzip - one.gzip);
  return [visited.slice(0, SHOWN), visited.length];
}

function links(html: string): string[] {
  const found = [...html.matchAll(/<a [^>]*?href="(\/[^/"#][^"#]*)/g)];
  return found.map(([, link]) => link!.replaceAll("&amp;", "&"));
}

/** The address with a sign in place of what differs from one thing to the next. */
function form(address: string): string {
  const [path] = address.split("?") as [string];
  return path
    .split("/")
    .map((part) => (/^\d+$|^[0-9a-f]{8}-[0-9a-f-]{27}$|^[A-Za-z0-9_-]{20,}$/.test(part) ? ":id" : part))
    .join("/");
}

function find(text: string, pattern: RegExp): string {
  const found = text.match(pattern)?.[1];
  if (!found) throw new Error(`nothing that is served fits ${pattern}`);
  return found;
}
