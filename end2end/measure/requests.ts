// Plain requests, without a browser between: bytes and times as they are.

import { Agent, request } from "node:http";
import { gunzipSync, gzipSync } from "node:zlib";
import type { State } from "./phone";

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

export interface Answer {
  status: number;
  type: string;
  /** Bytes as they were sent. */
  sent: number;
  /** Bytes after gzip, also where they were sent without. */
  gzip: number;
  /** Bytes that the browser works with. */
  bytes: number;
  text: string;
  /** ms until the head of the answer. */
  ttfb: number;
}

export function ask(url: string, cookie = ""): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { Cookie: cookie, "Accept-Encoding": "gzip", Accept: "text/html,*/*" };
    const began = performance.now();
    const asking = request(url, { agent, headers }, (response) => {
      const ttfb = performance.now() - began;
      const chunks: Buffer[] = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const sent = Buffer.concat(chunks);
        const isCompressed = response.headers["content-encoding"] === "gzip";
        const plain = isCompressed ? gunzipSync(sent) : sent;
        resolve({
          status: response.statusCode ?? 0,
          type: response.headers["content-type"] ?? "",
          sent: sent.length,
          gzip: isCompressed ? sent.length : gzipSync(plain).length,
          bytes: plain.length,
          text: plain.toString(),
          ttfb,
        });
      });
    });
    asking.on("error", reject).end();
  });
}

export function cookieOf(state: State): string {
  return state.cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
}
