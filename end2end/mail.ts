// A mail server that keeps what it gets, and a Weir that sends to it. Specs about
// mails take their `test` from here, each file its own:
//
//   const test = withMail();
//   test("a mail", async ({ page, server, mailbox }) => {
//     const mail = await mailbox.wait("grace@weir.example", "Confirm your address on Weir");

import { createServer, type Server as TcpServer, type Socket } from "node:net";
import { type Server, startServer } from "./server";
import { test as base } from "./tests/helpers";

export interface Mail {
  to: string;
  subject: string;
  /** All of it, with quoted-printable undone. */
  text: string;
}

const LIMIT_MS = 30_000;

export class Mailbox {
  readonly mails: Mail[] = [];
  private readonly sockets = new Set<Socket>();

  private constructor(private readonly tcp: TcpServer) {}

  static async open(): Promise<Mailbox> {
    const tcp = createServer();
    const mailbox = new Mailbox(tcp);
    tcp.on("connection", (socket) => mailbox.talk(socket));
    await new Promise<void>((resolve) => tcp.listen(0, "127.0.0.1", resolve));
    return mailbox;
  }

  get url(): string {
    return `smtp://127.0.0.1:${portOf(this.tcp)}`;
  }

  /** The newest mail of this subject, once there are so many to this address. */
  async wait(to: string, subject: string, count = 1): Promise<Mail> {
    const deadline = Date.now() + LIMIT_MS;
    for (;;) {
      const found = this.mails.filter((mail) => mail.to === to && mail.subject === subject);
      if (found.length >= count) return found[found.length - 1];
      if (Date.now() > deadline) throw new Error(`no mail "${subject}" to ${to}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.tcp.close(resolve));
  }

  private talk(socket: Socket): void {
    this.sockets.add(socket);
    socket.on("close", () => this.sockets.delete(socket)).on("error", () => socket.destroy());
    let [pending, to, text] = ["", "", ""];
    let inText = false;
    const answer = (line: string): boolean => socket.write(`${line}\r\n`);
    const take = (line: string): void => {
      if (inText && line === ".") {
        inText = false;
        this.mails.push(read(to, text));
        answer("250 kept");
      } else if (inText) {
        text += `${line.replace(/^\./, "")}\n`;
      } else if (/^DATA/i.test(line)) {
        [inText, text] = [true, ""];
        answer("354 send the mail");
      } else if (/^QUIT/i.test(line)) {
        answer("221 bye");
        socket.end();
      } else {
        if (/^RCPT/i.test(line)) to = line.match(/<(.*)>/)?.[1] ?? "";
        answer("250 good");
      }
    };
    answer("220 mailbox");
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (pending + chunk).split("\r\n");
      pending = lines.pop() ?? "";
      lines.forEach(take);
    });
  }
}

function read(to: string, text: string): Mail {
  const undone = text.replace(/=\n/g, "").replace(/=([0-9A-F]{2})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
  return { to, subject: undone.match(/^Subject: (.*)$/m)?.[1] ?? "", text: undone };
}

/** The path of the one-time link of a mail. */
export function linkOf(mail: Mail): string {
  const url = mail.text.match(/http\S+\?token=\w+/)?.[0];
  if (!url) throw new Error(`no link in: ${mail.text}`);
  const { pathname, search } = new URL(url);
  return pathname + search;
}

function portOf(tcp: TcpServer): number {
  const address = tcp.address();
  if (!address || typeof address === "string") throw new Error("not listening");
  return address.port;
}

/** A port that is free now: links need an address before the server has one. */
async function freePort(): Promise<number> {
  const tcp = createServer();
  await new Promise<void>((resolve) => tcp.listen(0, "127.0.0.1", resolve));
  const port = portOf(tcp);
  await new Promise((resolve) => tcp.close(resolve));
  return port;
}

interface Office {
  mailbox: Mailbox;
  server: Server;
}

/** `args` are further settings of the server. */
export function withMail(args: string[] = []) {
  return base.extend<{ mailbox: Mailbox }, { office: Office }>({
    office: [
      async ({}, use) => {
        const mailbox = await Mailbox.open();
        const address = `127.0.0.1:${await freePort()}`;
        const server = await startServer({
          args,
          env: { WEIR_LISTEN: address, WEIR_PUBLIC_URL: `http://${address}`, WEIR_SMTP_URL: mailbox.url },
        });
        await use({ mailbox, server });
        await server.stop();
        await mailbox.close();
      },
      { scope: "worker" },
    ],
    server: async ({ office }, use) => use(office.server),
    mailbox: async ({ office }, use) => use(office.mailbox),
  });
}
