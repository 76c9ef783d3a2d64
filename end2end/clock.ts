// A Weir whose clock tests can move. Specs about sessions that grow old take their
// `test` from here:
//
//   const test = withClock();
//   test("later", async ({ server, clock }) => {
//     await clock.advance(16 * 60);

import { execFile } from "node:child_process";
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Server, startServer } from "./server";
import { test as base } from "./tests/helpers";

const run = promisify(execFile);

// The time of day is read through libc, so a library before it can add to it. The number
// of seconds lies in a file that both sides share.
const SOURCE = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile long *ahead;
__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("TEST_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  void *shared = file < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  if (shared != MAP_FAILED) ahead = shared;
}
int clock_gettime(clockid_t which, struct timespec *at) {
  int result = syscall(SYS_clock_gettime, which, at);
  if (result == 0 && which == CLOCK_REALTIME && ahead) at->tv_sec += *ahead;
  return result;
}`;

export class Clock {
  private seconds = 0n;

  private constructor(private readonly directory: string) {}

  static async make(): Promise<Clock> {
    const clock = new Clock(await mkdtemp(join(tmpdir(), "weir-clock-")));
    await writeFile(`${clock.library}.c`, SOURCE);
    await run("cc", ["-shared", "-fPIC", "-o", clock.library, `${clock.library}.c`]);
    await writeFile(clock.file, Buffer.alloc(8));
    return clock;
  }

  get env(): Record<string, string> {
    return { LD_PRELOAD: this.library, TEST_CLOCK: this.file };
  }

  /** Moves the clock of the server forward. Its cookies age with it, those of the browser do not. */
  async advance(seconds: number): Promise<void> {
    this.seconds += BigInt(seconds);
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(this.seconds);
    const file = await open(this.file, "r+");
    await file.write(bytes, 0, 8, 0);
    await file.close();
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }

  private get library(): string {
    return join(this.directory, "clock.so");
  }

  private get file(): string {
    return join(this.directory, "ahead");
  }
}

/** Tests of one file, with a Weir and its clock. */
export function withClock() {
  return base.extend<{}, { timed: { clock: Clock; server: Server } }>({
    timed: [
      async ({}, use) => {
        const clock = await Clock.make();
        const server = await startServer({ env: clock.env });
        await use({ clock, server });
        await server.stop();
        await clock.remove();
      },
      { scope: "worker" },
    ],
  }).extend<{ clock: Clock }>({
    server: async ({ timed }, use) => use(timed.server),
    clock: async ({ timed }, use) => use(timed.clock),
  });
}
