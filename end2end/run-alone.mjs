// Runs every browser test in a Playwright run of its own, to show that no test needs
// another one: npm run alone [-- tests/account.spec.ts ...]
import { execFileSync, spawnSync } from "node:child_process";

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

const failed = tests.filter(({ at, project, title }, number) => {
  const run = spawnSync("npx", [...playwright, at, "--project", project, "--reporter=line"], { encoding: "utf8" });
  const passed = run.status === 0;
  console.log(`${number + 1}/${tests.length} ${passed ? "passed" : "FAILED"} [${project}] ${at} ${title}`);
  if (!passed) console.log(run.stdout, run.stderr);
  return !passed;
});

console.log(`${tests.length - failed.length} passed, ${failed.length} failed`);
process.exit(failed.length === 0 && tests.length > 0 ? 0 : 1);
