"""Cold start: what the files of a project state before anybody has told a lab anything."""

import json

import pytest

from memlab.subjects.modules.conventions import jsonc

RULE = "Use named exports, never default exports."


def scanned(lab, tmp_path, files):
    for name, text in files.items():
        path = tmp_path / "k" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return lab.agents.modules.scan(tmp_path / "k")


def rules(scan):
    return dict(zip(scan.conventions["text"], scan.conventions["files"].list.first(), strict=True))


@pytest.mark.parametrize(
    "file",
    [
        ".cursorrules",
        ".cursor/rules/style.mdc",
        ".windsurfrules",
        ".windsurf/rules/style.md",
        ".clinerules",
        ".clinerules/style.md",
        ".github/copilot-instructions.md",
        ".github/instructions/style.instructions.md",
        ".junie/guidelines.md",
        ".roo/rules/style.md",
        "AGENTS.md",
        "CLAUDE.md",
        "GEMINI.md",
        "packages/ui/CLAUDE.md",
        "CONVENTIONS.md",
        "CONTRIBUTING.md",
    ],
)
def test_instructions_for_every_tool_are_read(lab, tmp_path, file):
    scan = scanned(
        lab,
        tmp_path,
        {file: f"---\nglobs: '*'\n---\n# Style\n\n- {RULE}\n\n```\n- no rule, code it is\n```\n"},
    )
    assert rules(scan) == {RULE: file}
    assert len(lab) == 0


def test_orders_without_bullets_are_rules_for_agents(lab, tmp_path):
    text = f"You are an expert in TypeScript.\n\n{RULE}\nPrefer interfaces to types.\nThe shop sells tea.\n"
    assert list(rules(scanned(lab, tmp_path, {".cursorrules": text}))) == [
        RULE,
        "Prefer interfaces to types.",
    ]


def test_an_entry_that_goes_on_is_one_rule(lab, tmp_path):
    text = "- Dates are stored in UTC and shown\n  in the time zone of the reader.\n- Keep functions short.\n"
    assert list(rules(scanned(lab, tmp_path, {"AGENTS.md": text}))) == [
        "Dates are stored in UTC and shown in the time zone of the reader.",
        "Keep functions short.",
    ]


@pytest.mark.parametrize(
    "file", ["docs/howto/agents.md", "src/claude.py", "lib/agents.ts", "docs/README.md"]
)
def test_a_name_alone_makes_no_instruction(lab, tmp_path, file):
    assert rules(scanned(lab, tmp_path, {file: f"# Style\n- {RULE}\nreturn found and go\n"})) == {}


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        (
            "biome.json",
            {
                "formatter": {"indentStyle": "space", "indentWidth": 2, "lineWidth": 100},
                "javascript": {"formatter": {"quoteStyle": "single"}},
                "linter": {"rules": {"style": {"noVar": "error", "useConst": "off"}}},
            },
            [
                "Code is indented by 2 spaces (biome).",
                "Lines have at most 100 characters (biome).",
                "JavaScript is formatted by biome: quoteStyle single.",
                "The linter biome refuses: noVar.",
            ],
        ),
        (
            "biome.jsonc",
            '{ // why\n "formatter": {"indentStyle": "tab",},}',
            ["Code is indented by tabs (biome)."],
        ),
        (
            ".eslintrc.json",
            {
                "extends": ["airbnb"],
                "rules": {"quotes": ["error", "single"], "no-var": 2, "semi": "off"},
            },
            ["ESLint extends airbnb.", "ESLint refuses what breaks: quotes single, no-var."],
        ),
        (
            "eslint.config.js",
            "export default [{ rules: { eqeqeq: 'error', 'no-console': 'warn' } }]",
            ["ESLint refuses what breaks: eqeqeq."],
        ),
        (".eslintrc.yml", "rules:\n  no-eval: error\n", ["ESLint refuses what breaks: no-eval."]),
        (
            ".prettierrc",
            "semi: false\ntabWidth: 2\n",
            ["Code is formatted by prettier: semi false, tabWidth 2."],
        ),
        (
            "prettier.config.js",
            "export default {\n  singleQuote: true,\n}",
            ["Code is formatted by prettier: singleQuote true."],
        ),
        (
            "tsconfig.json",
            '{ /* all */ "compilerOptions": {"strict": true, "noImplicitReturns": true,} }',
            [
                "TypeScript is checked in strict mode.",
                "TypeScript is checked with noImplicitReturns.",
            ],
        ),
        ("tsconfig.json", '{"compilerOptions": {"strict": false}}', []),
        (
            ".editorconfig",
            "root = true\n[*]\nindent_style = space\nindent_size = 2\nmax_line_length = 100\n",
            [
                "Files * are indented by space, 2 wide.",
                "Lines of files * have at most 100 characters.",
            ],
        ),
        (
            "rustfmt.toml",
            'max_width = 100\nedition = "2021"\n',
            ["Rust is formatted by rustfmt: edition 2021, max_width 100."],
        ),
        (
            "ruff.toml",
            'line-length = 88\n[lint]\nselect = ["E", "F"]\n[format]\nquote-style = "single"\n',
            [
                "Lines of Python have at most 88 characters (ruff).",
                "Python is linted by ruff, rules E, F.",
                "Python is formatted by ruff: quote-style single.",
            ],
        ),
        (
            "pyproject.toml",
            '[tool.black]\nline-length=88\n[tool.isort]\nprofile="black"\n[tool.pyright]\ntypeCheckingMode="strict"\n',
            [
                "Lines of Python have at most 88 characters (black).",
                "Imports are sorted by isort: profile black.",
                "Types are checked by pyright in strict mode.",
            ],
        ),
        (
            "setup.cfg",
            "[flake8]\nmax-line-length = 99\n",
            ["Lines of Python have at most 99 characters (flake8)."],
        ),
        (
            ".aider.conf.yml",
            'lint-cmd: "ruff check"\nread: CONVENTIONS.md\n',
            ["Lint with: ruff check", "Read CONVENTIONS.md before a change."],
        ),
        (
            "commitlint.config.js",
            "module.exports = {extends: ['@commitlint/config-conventional']}",
            ["Commit messages follow the conventional commits (commitlint)."],
        ),
        (
            ".pre-commit-config.yaml",
            "repos:\n- repo: x\n  hooks:\n  - id: ruff\n  - id: mypy\n",
            ["Before a commit run: ruff, mypy (pre-commit)."],
        ),
        (".nvmrc", "v20\n", ["Node.js 20 is used."]),
        ("pnpm-lock.yaml", "", ["Packages are installed by pnpm, no other manager."]),
        ("package-lock.json", "{}", ["Packages are installed by npm, no other manager."]),
        ("uv.lock", "", ["Packages are installed by uv, no other manager."]),
        (
            "package.json",
            {"packageManager": "yarn@4.1.0"},
            ["Packages are installed by yarn, no other manager."],
        ),
        (
            "README.md",
            "## Tech Stack\n\n- **Next.js 14** - the framework\n- [PostgreSQL](https://x.org)\n\n## Use\n- npm start\n",
            ["The tech stack is Next.js 14, PostgreSQL."],
        ),
        (
            "README.md",
            "# Shop\n\nBuilt with Svelte and Go.\n",
            ["The tech stack is Svelte and Go."],
        ),
        (
            "README.md",
            "## Conventions\n\n- Use pnpm\n- All dates are UTC\n",
            ["Use pnpm", "All dates are UTC"],
        ),
        ("README.md", "## Development\n\n- Getting started\n- Releases\n", []),
    ],
)
def test_settings_are_rules_in_words(lab, tmp_path, file, text, expected):
    result = rules(scanned(lab, tmp_path, {file: text}))
    assert list(result) == expected
    assert set(result.values()) <= {file}


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"package.json": {"devDependencies": {"vitest": "1"}}}, "npx vitest run"),
        (
            {"package.json": {"devDependencies": {"jest": "1"}}, "pnpm-lock.yaml": ""},
            "pnpm exec jest",
        ),
        (
            {"package.json": {"devDependencies": {"mocha": "1"}, "packageManager": "yarn@4"}},
            "yarn mocha",
        ),
        (
            {"package.json": {"scripts": {"test": "jest --ci"}, "devDependencies": {"jest": "1"}}},
            "npm test",
        ),
        ({"requirements-dev.txt": "pytest>=8  # tests\n-r requirements.txt\n"}, "pytest"),
        ({"pyproject.toml": '[tool.poetry.group.dev.dependencies]\npytest = "^8"\n'}, "pytest"),
        ({"tests/test_a.py": "import unittest\n"}, "python -m unittest"),
        ({"pkg/a_test.py": "import pytest\n"}, "pytest"),
        ({"Gemfile": "gem 'rspec'\n"}, "bundle exec rspec"),
        ({"Cargo.toml": '[package]\nname = "k"\n'}, "cargo test"),
    ],
)
def test_how_tests_are_run_is_known_without_their_settings(lab, tmp_path, files, command):
    commands = scanned(lab, tmp_path, files).commands
    assert [row["command"] for row in commands.filter(what="test").to_dicts()] == [command]


@pytest.mark.parametrize(
    "file", ["biome.json", "tsconfig.json", "rustfmt.toml", "ruff.toml", ".prettierrc", "setup.cfg"]
)
@pytest.mark.parametrize(
    "text", ["{", "[", '{"formatter": 7, "compilerOptions": []}', "[x", "\x00", "x" * 50_000]
)
def test_a_broken_file_is_left_out_and_the_others_count(lab, tmp_path, file, text):
    scan = scanned(lab, tmp_path, {file: text, ".cursorrules": f"- {RULE}"})
    assert RULE in rules(scan)


def test_comments_in_json_are_no_strings():
    assert jsonc('{"a": "http://x", /* , */ "b": ["//", 2,], // end\n}') == {
        "a": "http://x",
        "b": ["//", 2],
    }
