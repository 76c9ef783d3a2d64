// Runs every browser test in a Playwright run of its own, to show that no test needs
// another one: npm run alone [-- tests/account.spec.ts ...]
import { execFileSync, spawn } from "node:child_process";

/** As many at a time as `playwright.config.ts` has workers. */
const LANES = 2;

const playwright = ["--no-install", "playwright", "test"];

const list = execFileSync("npx", [...playwright, ...process.argv.slice(2), "--list", "--reporter=json"], {
  encoding: "utf8",
  maxBuffer: 64 << 20,
});

// A test has a run per project: with scripts and without.
const tests = [];
const collect = (suite) => {
  for (const inner of suite.suites ?? []) collect(inner);
  for (const { file, line, title, tests: runs } of suite.specs ?? []) {
    for (const { projectName } of runs) tests.push({ at: `tests/${file}:${line}`, project: projectName, title });
  }
};
JSON.parse(list).suites.forEach(collect);

/** Runs a test. Its traces stay, because each run has a directory of its own. */
function run({ at, project }, number) {
  const options = [at, "--project", project, "--reporter=line", "--output", `test-results/alone-${number}`];
  const child = spawn("npx", [...playwright, ...options], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  return new Promise((resolve) => child.on("close", (status) => resolve({ status, output })));
}

const counts = { passed: 0, skipped: 0, FAILED: 0 };
const waiting = [...tests.entries()];

async function lane() {
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const [index, test] = next;
    const { status, output } = await run(test, index + 1);
    // Some tests are for browsers with scripts only.
    const outcome = status !== 0 ? "FAILED" : /^\s*1 passed/m.test(output) ? "passed" : "skipped";
    counts[outcome] += 1;
    console.log(`${index + 1}/${tests.length} ${outcome} [${test.project}] ${test.at} ${test.title}`);
    if (outcome === "FAILED") console.log(output);
  }
}

await Promise.all(Array.from({ length: LANES }, lane));
console.log(`${counts.passed} passed, ${counts.skipped} skipped, ${counts.FAILED} failed`);
process.exit(counts.passed > 0 && counts.FAILED === 0 ? 0 : 1);
