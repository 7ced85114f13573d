"""Run the tutorials and store their outputs: ``python -m experiments.run_notebooks [NAME ...]``.

A widget is stored as a page without Python. Its state is removed, because it contains the widget's whole program. The
command fails if a cell fails, or if an output names a folder of this machine.
"""

from __future__ import annotations

import re
import resource
import sys
import tempfile
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).parents[1] / "notebooks"
CELL = re.compile(r"[^\s\"]*ipykernel_\d+/\d+\.py(?=:\d)")
"""The file of a cell in a warning; its name changes with each run."""
WIDGET = "application/vnd.jupyter.widget-view+json"


def measure_processor() -> float:
    """Return the seconds of processor time of all kernels that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_notebook(path: Path) -> float:
    """Run a notebook and write it with its outputs; return the seconds of processor time."""
    notebook = nbformat.read(path, as_version=4)
    begin = measure_processor()
    with tempfile.TemporaryDirectory() as empty:
        client = nbclient.NotebookClient(
            notebook,
            timeout=300,
            record_timing=False,
            store_widget_state=False,
            resources={"metadata": {"path": empty}},
        )
        client.execute()
        took = measure_processor() - begin
        for cell in notebook.cells:
            for output in cell.get("outputs", ()):
                output.get("data", {}).pop(WIDGET, None)
                if output.output_type == "stream":
                    output.text = CELL.sub("cell", output.text)
        text = nbformat.writes(notebook)
        for folder in (empty, str(FOLDER.parent), str(Path.home()), sys.prefix):
            if folder + "/" in text:
                raise SystemExit(f"{path.name} shows {folder}")
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return took


if __name__ == "__main__":
    for notebook_path in sorted(FOLDER.glob("*.ipynb")):
        if not sys.argv[1:] or notebook_path.stem in sys.argv[1:]:
            print(
                f"{notebook_path.name}: {run_notebook(notebook_path):.1f} s of processor time",
                flush=True,
            )
