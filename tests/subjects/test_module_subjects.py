"""Modules are subjects: files of one subject lie in many folders, and files of one folder are of many subjects."""

import pytest

import memlab
from memlab.subjects.modules.module_map import by_subject

WEB = {
    "src/auth/tokens.ts": "",
    "src/auth/session.ts": "",
    "src/middleware/auth.ts": "",
    "src/middleware/login.ts": "import {a} from '../auth/tokens'\nimport {b} from '../auth/session'\n",
    "src/routes/auth.ts": "",
    "stores/auth-store.ts": "",
    "src/components/AuthGuard.tsx": "",
    "src/billing/invoice.ts": "",
    "src/routes/billing.ts": "",
    "src/components/InvoiceTable.tsx": "import {i} from '../billing/invoice'\n",
    "src/components/Button.tsx": "",
    "src/routes/users.ts": "",
    "src/models/user.ts": "",
    "src/utils/date.ts": "",
    "src/index.ts": "",
    "tests/auth.test.ts": "",
    "tests/invoice.test.ts": "",
}


def written(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def modules(lab, tmp_path):
    """Return the files and tests of each module."""

    def scanned(files):
        frame = lab.agents.modules.scan(written(tmp_path / "k", files), project="k").frame
        return {
            row["module"]: set(row["files"]) | set(row["tests"])
            for row in frame.iter_rows(named=True)
        }

    return scanned


def test_files_of_one_subject_in_many_folders_are_one_module(modules):
    assert modules(WEB)["src/auth"] == {
        "src/auth/tokens.ts",
        "src/auth/session.ts",
        "src/middleware/auth.ts",
        "src/middleware/login.ts",
        "src/routes/auth.ts",
        "stores/auth-store.ts",
        "src/components/AuthGuard.tsx",
        "tests/auth.test.ts",
    }


def test_files_of_one_folder_are_of_many_modules(modules):
    result = modules(WEB)
    assert result["src/billing"] == {
        "src/billing/invoice.ts",
        "src/routes/billing.ts",
        "src/components/InvoiceTable.tsx",
        "tests/invoice.test.ts",
    }
    assert result["user"] == {"src/routes/users.ts", "src/models/user.ts"}
    assert result["src/components"] == {"src/components/Button.tsx"}
    assert {"src/index.ts", "src/utils/date.ts"} <= result["src"]


def test_front_end_and_back_end_of_one_subject_are_one_module(modules):
    files = [
        "client/auth/form.tsx",
        "client/auth/hook.ts",
        "server/auth/check.py",
        "server/auth/token.py",
    ]
    files += ["client/cart/view.tsx", "client/cart/sum.ts"]
    result = modules(dict.fromkeys(files, ""))
    assert result["client/auth"] == set(files[:4])
    assert result["client/cart"] == set(files[4:])


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("src/controllers/authentication.controller.ts", "src/auth"),
        ("src/services/AuthService.java", "src/auth"),
        ("src/middlewares/author.ts", "src/middlewares"),
        ("src/models/authors.ts", "src/models"),
    ],
)
def test_a_name_is_read_by_its_words(modules, name, module):
    result = modules(
        {"src/auth/a.ts": "", "src/auth/b.ts": "", name: "", name.replace("auth", "x"): ""}
    )
    assert name in result[module]


def test_same_names_in_two_packages_are_two_modules():
    groups = {
        "packages/shop/auth": ["packages/shop/auth/a.py", "packages/shop/auth/b.py"],
        "packages/blog/auth": ["packages/blog/auth/a.py", "packages/blog/auth/b.py"],
    }
    assert by_subject(groups) == {name: sorted(held) for name, held in sorted(groups.items())}


def test_a_file_that_no_scan_found_belongs_to_its_subject(lab, tmp_path):
    lab.agents.modules.scan(written(tmp_path / "k", WEB), project="k")
    for path in (
        "src/routes/auth-callback.ts",
        "src/auth/deep/mfa.ts",
        "lib/auth.ts",
        "src/billing/vat.ts",
        "misc/x.ts",
    ):
        lab.remember(f"something of {path}", files=[path], project="k", session=path)
    frame = lab.agents.modules.map("k").frame
    files = {row["module"]: row["files"] for row in frame.iter_rows(named=True)}
    assert {"src/auth/deep/mfa.ts", "lib/auth.ts"} <= set(files["src/auth"])
    assert "src/billing/vat.ts" in files["src/billing"]
    assert not any("misc/x.ts" in file for file in files.values())


@pytest.mark.long
def test_a_context_for_a_module_has_its_memories_of_all_folders(clock, tmp_path):
    with memlab.open(pack="workbench", clock=clock) as lab:
        lab.agents.modules.scan(written(tmp_path / "k", WEB), project="k")
        files = ["src/middleware/login.ts", "stores/auth-store.ts", "src/billing/invoice.ts"]
        rows = [
            {"text": f"Fact {n} about it", "kind": "gotcha", "files": [file], "project": "k"}
            for n, file in enumerate(files)
        ]
        lab.remember(rows, linking="off")
        context = lab.context("mend the authentication", project="k")
        assert context.modules[0] == "src/auth"
        assert set(context.frame["memory_id"]) == {1, 2}


@pytest.mark.long
def test_without_a_map_a_file_is_known_by_the_subject_of_its_name(clock):
    with memlab.open(pack="workbench", clock=clock) as lab:
        lab.remember(
            "It keeps the token in memory",
            kind="gotcha",
            files=["stores/auth-store.ts"],
            project="k",
        )
        assert len(lab.context("mend auth", project="k")) == 1
