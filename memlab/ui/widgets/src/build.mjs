// Bundles each folder with an index.tsx into the module ../static/<folder>.js. hosts/page.ts and hosts/app.ts become
// scripts, because a page on a disk or in a host of MCP Apps may load no module.
// With --check it writes nothing, and fails if a byte of a committed bundle differs.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "static");
const entries = {};
for (const name of readdirSync(here).sort()) {
  const index = join(here, name, "index.tsx");
  if (existsSync(index)) entries[name] = index;
}
// Styles are imported as texts, which esbuild does not minify.
const minifiedStyles = {
  name: "minified-styles",
  setup(bundle) {
    bundle.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
};
const settings = {
  absWorkingDir: here,
  outdir: out,
  write: false,
  metafile: true,
  bundle: true,
  minify: true,
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  plugins: [minifiedStyles],
  legalComments: "none",
  banner: { js: "/* Built from memlab/ui/widgets/src. Licences of what is bundled: NOTICE. */" },
  logLevel: "warning",
};
const results = await Promise.all([
  build({ ...settings, entryPoints: entries, format: "esm" }),
  build({
    ...settings,
    entryPoints: ["page", "app"].map((name) => join(here, "hosts", `${name}.ts`)),
    format: "iife",
  }),
]);
const outputFiles = results.flatMap((result) => result.outputFiles);

// bundled.json lists the packages of which code is in a bundle, for NOTICE and the SBOM of a release.
const names = new Set();
for (const { metafile } of results)
  for (const output of Object.values(metafile.outputs))
    for (const [path, { bytesInOutput }] of Object.entries(output.inputs)) {
      const name = path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1];
      if (name && bytesInOutput) names.add(name);
    }
const packages = {};
for (const name of [...names].sort()) {
  const path = join(here, "node_modules", name, "package.json");
  const { version, license } = JSON.parse(readFileSync(path, "utf8"));
  packages[name] = { version, license };
}

mkdirSync(out, { recursive: true });
const built = new Map(outputFiles.map((file) => [file.path, Buffer.from(file.contents)]));
const list = join(here, "bundled.json");
built.set(list, Buffer.from(`${JSON.stringify(packages, null, 2)}\n`));
const stale = readdirSync(out)
  .map((name) => join(out, name))
  .filter((path) => !built.has(path));
if (process.argv.includes("--check")) {
  const differ = [...built].filter(
    ([path, bytes]) => !existsSync(path) || !readFileSync(path).equals(bytes),
  );
  const wrong = [...differ.map(([path]) => path), ...stale];
  if (wrong.length) {
    console.error(`These bundles are out of date; run "npm run build": ${wrong.join(", ")}`);
    process.exit(1);
  }
} else {
  for (const path of stale) rmSync(path);
  for (const [path, bytes] of built) writeFileSync(path, bytes);
}
for (const [path, bytes] of built)
  console.log(`${relative(out, path)}  ${(bytes.length / 1024).toFixed(1)} kB`);
