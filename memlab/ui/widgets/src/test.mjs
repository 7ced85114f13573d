// Runs the unit tests: node runs no TypeScript, so each *.test.ts is bundled, and node's test runner takes the bundles.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const tests = readdirSync(join(here, "tests")).filter((name) => name.endsWith(".test.ts"));
const out = mkdtempSync(join(tmpdir(), "memlab-widgets-"));
try {
  await build({
    absWorkingDir: here,
    entryPoints: tests.map((name) => join(here, "tests", name)),
    outdir: out,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".css": "text" },
    logLevel: "warning",
  });
  const bundles = readdirSync(out).map((name) => join(out, name));
  const { status } = spawnSync(process.execPath, ["--test", ...bundles], { stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
