"""The map of a code base: what a scan finds without running anything, and how well a lab knows each module."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memlab
from memlab.errors import InputError, PrivacyError, UnknownName
from tests.displays import html_of

SHOP = {
    "README.md": "# Shop\n\nA shop for tea.\n\n## Style\n\n- Names of functions are verbs, always.\n",
    "pyproject.toml": """
        [build-system]
        requires = []
        [project]
        name = "shop"
        dependencies = ["fastapi>=0.100"]
        [project.scripts]
        shop = "shop.web.server:run"
        [tool.pytest.ini_options]
        [tool.ruff]
        line-length = 100
        """.replace("\n        ", "\n"),
    "Makefile": "test: build\n\tpytest\nbuild:\n\tpython -m build\nVERSION := 1\n",
    "CONTRIBUTING.md": "- A change has a test that fails without it.\n- short\n```\n- not a rule, an example\n```\n",
    "shop/__init__.py": '"""A shop for tea."""',
    "shop/cart/__init__.py": '"""Carts: what a customer is about to buy. And more."""',
    "shop/cart/prices.py": "from shop.stock import levels\nfrom ..stock.levels import left\n",
    "shop/stock/levels.py": "import json",
    "shop/stock/orders.py": "import shop.cart.prices",
    "shop/web/server.py": "from shop import cart\nfrom shop.cart.prices import total",
    "shop/web/pages.py": "",
    "tests/cart/test_prices.py": "",
    "tests/test_levels.py": "",
    "tests/conftest.py": "",
    "node_modules/x/index.js": "",
    ".git/config.py": "",
    "secret/.env": "TOKEN=1",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return written(tmp_path / "shop-code", SHOP)


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def column(scan: memlab.subjects.modules.module_map.ModuleMap, name: str) -> dict[str, object]:
    return dict(scan.frame.select("module", name).rows())


class TestScan:
    def test_folders_of_files_are_modules(self, lab: memlab.Lab, shop: Path) -> None:
        scan = lab.agents.modules.scan(shop, project="shop")
        assert column(scan, "description") == {
            "shop": "A shop for tea.",
            "shop/cart": "Carts: what a customer is about to buy.",
            "shop/stock": "2 files of Python.",
            "shop/web": "2 files of Python.",
            "tests": "1 file of Python.",
        }
        assert lab.agents.modules.projects() == ("shop",)
        assert scan.frameworks == ("fastapi", "pytest")
        assert scan.languages == {"Python": 10}

    def test_tests_belong_to_what_they_are_named_after(self, lab: memlab.Lab, shop: Path) -> None:
        tests = column(lab.agents.modules.scan(shop, project="shop"), "tests")
        assert tests["shop/cart"] == ["tests/cart/test_prices.py"]
        assert tests["shop/stock"] == ["tests/test_levels.py"]
        assert tests["tests"] == ["tests/conftest.py"]

    def test_imports_lead_from_one_to_another(self, lab: memlab.Lab, shop: Path) -> None:
        scan = lab.agents.modules.scan(shop, project="shop")
        assert column(scan, "depends_on") == {
            "shop": [],
            "shop/cart": ["shop/stock"],
            "shop/stock": ["shop/cart"],
            "shop/web": ["shop/cart"],
            "tests": [],
        }
        assert column(scan, "related")["shop/cart"] == ["shop/stock", "shop/web"]
        assert column(scan, "entry_points")["shop/web"] == ["shop/web/server.py"]

    def test_how_it_is_built_and_tested(self, lab: memlab.Lab, shop: Path) -> None:
        commands = lab.agents.modules.scan(shop, project="shop").commands
        assert set(commands.rows()) == {
            ("test", "make test", "Makefile"),
            ("build", "make build", "Makefile"),
            ("build", "python -m build", "pyproject.toml"),
            ("test", "pytest", "pyproject.toml"),
            ("lint", "ruff check .", "pyproject.toml"),
        }

    @pytest.mark.long
    def test_conventions_are_for_review_and_can_be_remembered(
        self, lab: memlab.Lab, shop: Path
    ) -> None:
        rules = lab.agents.modules.scan(shop, project="shop").conventions
        assert dict(zip(rules["text"], rules["files"].list.first(), strict=True)) == {
            "A change has a test that fails without it.": "CONTRIBUTING.md",
            "Names of functions are verbs, always.": "README.md",
            "Lines of Python have at most 100 characters (ruff).": "pyproject.toml",
        }
        assert len(lab) == 0
        lab.remember(rules)
        assert set(lab.memories["kind"]) == {"convention"}

    @pytest.mark.parametrize(
        ("files", "needed"),
        [
            (
                {"a/x.ts": 'import { y } from "../b/y";', "a/z.ts": "", "b/y.ts": "", "b/w.ts": ""},
                ["b"],
            ),
            (
                {
                    "a/x.js": "const y = require('../b')",
                    "a/z.js": "",
                    "b/index.js": "",
                    "b/w.js": "",
                },
                ["b"],
            ),
            (
                {
                    "Cargo.toml": '[package]\nname = "k"',
                    "src/a/x.rs": "use crate::b::y;",
                    "src/a/z.rs": "",
                }
                | {"src/b/y.rs": "", "src/b/mod.rs": ""},
                ["src/b"],
            ),
            (
                {
                    "go.mod": "module example.com/k\n",
                    "a/x.go": 'import (\n\t"fmt"\n\t"example.com/k/b"\n)',
                    "a/z.go": "",
                }
                | {"b/y.go": "", "b/w.go": ""},
                ["b"],
            ),
        ],
        ids=["typescript", "javascript", "rust", "go"],
    )
    def test_imports_of_other_languages(
        self, lab: memlab.Lab, tmp_path: Path, files: dict[str, str], needed: list[str]
    ) -> None:
        result = column(lab.agents.modules.scan(written(tmp_path / "k", files)), "depends_on")
        assert result[needed[0].replace("b", "a")] == needed

    def test_scripts_of_a_package(self, lab: memlab.Lab, tmp_path: Path) -> None:
        arguments = {
            "scripts": {"test": "vitest", "build": "x", "odd": "y"},
            "devDependencies": {"vitest": "1"},
        }
        scan = lab.agents.modules.scan(
            written(tmp_path / "k", {"ui/package.json": json.dumps(arguments), "ui/yarn.lock": ""})
        )
        assert scan.commands.rows() == [
            ("test", "cd ui && yarn test", "ui/package.json"),
            ("build", "cd ui && yarn run build", "ui/package.json"),
        ]
        assert scan.frameworks == ("vitest",)

    @pytest.mark.long
    def test_memlab_itself(self, lab: memlab.Lab) -> None:
        scan = lab.agents.modules.scan(
            Path(memlab.__file__).parents[1], project="memlab", progress=False
        )
        assert {"memlab/kernel/journal", "memlab/kernel/recall", "memlab/kernel/language"} <= set(
            scan.frame["module"]
        )
        assert "memlab/kernel/index" in column(scan, "depends_on")["memlab/kernel/recall"]
        best = lab.agents.modules.find("a snapshot of the state is written twice", project="memlab")
        assert best["module"][0] == "memlab/kernel/state"


class TestWhatALabKnows:
    def test_files_that_memories_name_make_a_module_known(
        self, lab: memlab.Lab, shop: Path
    ) -> None:
        lab.agents.modules.scan(shop, project="shop")
        assert set(lab.agents.modules.map("shop").frame["confidence"]) == {"shallow"}
        for session in ("mon", "tue", "wed"):
            lab.remember(
                f"{session}: prices round",
                project="shop",
                session=session,
                files=["shop/cart/prices.py"],
            )
        lab.remember("orders are late", project="shop", session="mon", files=["shop/stock/late.py"])
        lab.remember("elsewhere", project="other", session="mon", files=["shop/web/server.py"])
        result = lab.agents.modules.map("shop")
        assert column(result, "confidence") == {
            "shop": "shallow",
            "shop/cart": "mapped",
            "shop/stock": "partial",
            "shop/web": "shallow",
            "tests": "shallow",
        }
        assert "shop/stock/late.py" in column(result, "files")["shop/stock"]  # type: ignore[operator]
        assert result.coverage == 0.2

    def test_a_description_of_a_module_is_kept(self, lab: memlab.Lab, shop: Path) -> None:
        lab.agents.modules.scan(shop, project="shop")
        lab.agents.modules.describe(
            "shop/web",
            project="shop",
            description="Pages that people see.",
            files=["deploy/web.sh"],
        )
        lab.agents.modules.describe("ops", project="shop", files=["deploy/ops.sh"], new=True)
        scan = lab.agents.modules.scan(shop, project="shop")
        assert scan.version == 4
        assert column(scan, "description")["shop/web"] == "Pages that people see."
        assert column(scan, "confidence")["shop/web"] == "partial"
        assert column(scan, "files")["ops"] == ["deploy/ops.sh"]
        with pytest.raises(UnknownName, match="shop/web"):
            lab.agents.modules.describe("shop/wep", project="shop", description="A slip.")

    def test_a_task_finds_its_modules(self, lab: memlab.Lab, shop: Path) -> None:
        lab.agents.modules.scan(shop, project="shop")
        position = lab.agents.modules.find("prices in the cart are wrong", project="shop")
        assert position["module"].to_list() == ["shop/cart"]
        assert position["why"].to_list() == [["pric", "cart"]]
        assert lab.agents.modules.find("zebra", project="shop").is_empty()

    @pytest.mark.long
    def test_modules_survive_reopening(self, disk, shop: Path) -> None:
        with disk() as lab:
            before = lab.agents.modules.scan(shop, project="shop").frame
            lab.io.snapshot()
        with disk() as lab:
            assert lab.agents.modules.map("shop").frame.equals(before)
            assert lab.at(event=2).agents.modules.projects() == ()

    @pytest.mark.long
    def test_the_map_of_a_deleted_project_goes_at_once(self, disk, shop: Path) -> None:
        with disk() as lab:
            lab.agents.modules.scan(shop, project="shop")
            lab.remember("the cart rounds", project="shop")
            lab.agents.modules.scan(shop, project="other")
            lab.forget(1, how="delete")
            # memories by name take no map along
            assert lab.agents.modules.projects() == ("other", "shop")
            lab.forget(project="shop", how="delete")
            assert lab.agents.modules.projects() == ("other",)
            lab.restore(project="shop")
            assert lab.agents.modules.projects() == ("other",)
            lab.forget(project="other", how="delete")  # a map without a memory
            assert lab.agents.modules.projects() == ()
            with pytest.raises(UnknownName):
                lab.forget(project="other", how="delete")
        with disk() as lab:
            assert lab.agents.modules.projects() == ()
            lab.agents.modules.scan(shop, project="shop")
            assert lab.agents.modules.projects() == ("shop",)

    def test_private_memories_of_others_are_left_out(self, lab: memlab.Lab, shop: Path) -> None:
        lab.agents.modules.scan(shop, project="shop")
        mine = {"project": "shop", "visibility": "private", "creator": "ann"}
        lab.remember("hers", files=["shop/cart/hidden_plan.py"], session="s", **mine)
        assert "hidden_plan" in str(lab.agents.modules.map("shop").frame.rows())
        assert "hidden_plan" not in str(
            lab.at(viewer="bob").agents.modules.map("shop").frame.rows()
        )

    @pytest.mark.long
    def test_a_purged_text_is_cut_out_of_what_was_said(self, disk, shop: Path) -> None:
        with disk() as lab:
            lab.agents.modules.scan(shop, project="shop")
            secret = lab.remember("The cart forgets everything after forty minutes", project="shop")
            lab.agents.modules.describe("shop/cart", project="shop", description=secret.text)
            lab.purge(secret)
            assert "forty" not in lab.agents.modules.map("shop").text
            assert lab.agents.modules.map("shop").version == 2
        with disk() as lab:
            assert "forty" not in lab.agents.modules.map("shop").text

    def test_a_scan_renders(self, lab: memlab.Lab, shop: Path) -> None:
        scan = lab.agents.modules.scan(shop, project="<b>")
        assert repr(scan) == "<ModuleMap <b>, version 1: 5 modules, 5 shallow>"
        assert "<b>" not in html_of(scan).replace("&lt;b&gt;", "")
        assert "shop/cart: Carts: what a customer is about to buy.\n" in scan.text
        assert "test: pytest" in scan.text


class TestUntrusted:
    def test_links_and_binary_files_and_broken_manifests(
        self, lab: memlab.Lab, tmp_path: Path
    ) -> None:
        folder = written(
            tmp_path / "k",
            {
                "a/x.py": "",
                "a/y.py": "",
                "package.json": "{",
                "Cargo.toml": "x = [",
                "pyproject.toml": "[project]\nscripts = 7",
            },
        )
        (folder / "a" / "loop").symlink_to(folder, target_is_directory=True)
        (folder / "a" / "passwd.py").symlink_to("/etc/passwd")
        (folder / "a" / "blob.py").write_bytes(b"\0\xff" * 100)
        os.mkfifo(folder / "a" / "pipe.py")
        scan = lab.agents.modules.scan(folder)
        assert scan.left_out == {"a link": 2, "a manifest that is broken": 3}
        assert column(scan, "files") == {"a": ["a/blob.py", "a/x.py", "a/y.py"]}

    def test_names_that_hide_something(self, lab: memlab.Lab, tmp_path: Path) -> None:
        key = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
        folder = written(tmp_path / "k", {"a.py": "", f"{key}.py": "", "b\x1b[2J.py": ""})
        scan = lab.agents.modules.scan(folder)
        assert column(scan, "files") == {".": ["a.py"]}
        assert scan.left_out == {"a name that cannot be stored": 1, "named like a secret": 1}

    def test_a_secret_in_a_rule_is_redacted(self, lab: memlab.Lab, tmp_path: Path) -> None:
        key = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
        scan = lab.agents.modules.scan(
            written(tmp_path / "k", {"AGENTS.md": f"- Use the token {key} for pushes.\n"})
        )
        assert key not in str(scan.conventions.rows())
        assert "REDACTED" in scan.conventions["text"][0]

    @pytest.mark.long
    def test_a_very_deep_folder(self, lab: memlab.Lab, tmp_path: Path) -> None:
        written(tmp_path / "k", {f"{'d/' * 300}x.py": ""})
        assert lab.agents.modules.scan(tmp_path / "k").left_out == {
            "a name that cannot be stored": 1
        }

    def test_scans_that_are_refused(self, lab: memlab.Lab, shop: Path) -> None:
        with pytest.raises(InputError, match="is not a folder"):
            lab.agents.modules.scan(shop / "README.md")
        with pytest.raises(UnknownName, match=r"modules\.scan"):
            lab.agents.modules.map("nowhere")
        lab.agents.modules.scan(shop, project="shop")
        with pytest.raises(InputError, match="file of secrets"):
            lab.agents.modules.describe("shop", project="shop", files=["deploy/.env"])
        with pytest.raises(PrivacyError):
            lab.agents.modules.scan(shop, project="ghp_16C7e42F292c6912E7710c838347Ae178B4a")
        assert lab.agents.modules.projects() == ("shop",)

    @pytest.mark.long
    @settings(max_examples=25)
    @given(
        st.dictionaries(
            st.lists(
                st.sampled_from(["a", "b", "tests", "src", "x_test"]), min_size=1, max_size=4
            ).map("/".join),
            st.sampled_from(
                [
                    "",
                    "import a.b",
                    "from ... import b",
                    'from "../../.." ',
                    "use crate::a::b;",
                    "/* */",
                    '"""',
                ]
            ),
            max_size=12,
        ),
        st.sampled_from([".py", ".ts", ".rs", ".go"]),
    )
    def test_each_source_is_in_one_module(
        self, tmp_path_factory, files: dict[str, str], end: str
    ) -> None:
        folder = written(
            tmp_path_factory.mktemp("any"), {f"{path}{end}": text for path, text in files.items()}
        )
        with memlab.open() as lab:
            scan = lab.agents.modules.scan(folder, project="any")
            held = [
                path for paths in ("files", "tests") for held in scan.frame[paths] for path in held
            ]
            assert sorted(held) == sorted(f"{path}{end}" for path in files)
            assert set(scan.frame["depends_on"].explode().drop_nulls()) <= set(scan.frame["module"])


@pytest.mark.long
class TestCommands:
    def test_scanned_listed_and_found(self, run, json_of, tmp_path: Path, shop: Path) -> None:
        lab = tmp_path / "shop.lab"
        memlab.open(lab).close()
        data = json_of("agent", "scan", lab, shop, "--project", "shop")
        assert {module["module"] for module in data["modules"]} >= {"shop/cart", "shop/web"}
        assert "shallow  shop/cart" in run("agent", "modules", lab).output
        assert json_of("agent", "modules", lab, "prices in the cart")[0]["module"] == "shop/cart"
        assert run("agent", "modules", lab, "--project", "shoq").exit_code == 1
