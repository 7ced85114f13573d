"""Files that hold secrets, by their paths, and those that a project says are nobody's business."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


__all__ = [
    "IGNORE_FILES",
    "SENSITIVE",
    "Ignored",
    "find_ignore_file",
    "is_sensitive",
    "split_sensitive",
]

IGNORE_FILES = (".gitignore", ".secretsignore")

SENSITIVE = """
.env
.env.*
!.env.example
!.env.sample
!.env.template
!.env.dist
*.env
.envrc
id_rsa*
id_dsa*
id_ecdsa*
id_ed25519*
!id_*.pub
*.pem
*.key
*.p12
*.pfx
*.jks
*.keystore
*.ppk
*.kdbx
*.asc
.aws/credentials
.aws/config
.azure/accessTokens.json
.config/gcloud/
application_default_credentials.json
service-account*.json
.docker/config.json
.dockercfg
.netrc
_netrc
.pgpass
.my.cnf
.npmrc
.pypirc
.htpasswd
.git-credentials
.vault-token
.kube/config
kubeconfig
*.kubeconfig
*.tfstate
*.tfstate.backup
*.tfvars
credentials.json
client_secret*.json
secrets.json
secrets.yml
secrets.yaml
secrets.toml
.ssh/
.gnupg/
wallet.dat
.bash_history
.zsh_history
.psql_history
.mysql_history
""".strip()
"""Paths of files that hold secrets, as .gitignore writes patterns."""


@cache
def _sensitive() -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # late: most memories point to no file

    return GitIgnoreSpec.from_lines(SENSITIVE.lower().splitlines())


def is_sensitive(path: str) -> bool:
    """Whether a file of this path holds secrets, by its name or its folder; case and kind of slash do not count.

    >>> is_sensitive("deploy/.env"), is_sensitive("src/.env.example"), is_sensitive("~/.ssh/id_rsa")
    (True, False, True)
    """
    plain = PurePosixPath(path.replace("\\", "/").lower())
    parts = [part for part in plain.parts if part not in ("/", "~", ".", "..")]
    return bool(parts) and _sensitive().match_file("/".join(parts))


def split_sensitive(paths: Iterable[str] | None) -> tuple[list[str] | None, tuple[str, ...]]:
    """The paths that may be stored (None if there are none), and those that may not."""
    if not paths:
        return None, ()
    given = list(paths)
    held = tuple(path for path in given if is_sensitive(path))
    return [path for path in given if path not in held] or None, held


class Ignored:
    """What a folder's .gitignore and .secretsignore leave out, and every sensitive file.

    Only the folder's own two files are read, not those of folders within it.
    """

    def __init__(self, folder: Path) -> None:
        lines = [
            line
            for name in IGNORE_FILES
            if (file := folder / name).is_file()
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
        ]
        from pathspec import GitIgnoreSpec  # late, as above

        self._spec = GitIgnoreSpec.from_lines(lines)

    def __contains__(self, path: str) -> bool:
        """Whether the file of this path, relative to the folder, is left out."""
        return is_sensitive(path) or self._spec.match_file(path)


_MOST_FOLDERS = 40
"""Folders above a file whose rules are read."""


def find_ignore_file(path: str) -> Path | None:
    """Return the .gitignore or .secretsignore that leaves a file out, or None.

    The rules of each folder above the file count, up to the root of its repository (the folder that holds .git). A
    relative path counts where there is such a file below the working directory; a path whose folder is not on this
    machine is left out by nothing.
    """
    given = Path(path.replace("\\", "/"))
    try:
        file = given.expanduser()
        if not file.is_absolute():
            if not file.exists():
                return None
            file = file.absolute()
        for folder in list(file.parents)[:_MOST_FOLDERS]:
            relative = file.relative_to(folder).as_posix()
            for name in IGNORE_FILES:
                if (rules := folder / name).is_file() and _rules(rules).match_file(relative):
                    return rules
            if (folder / ".git").exists():
                return None
    except (
        OSError,
        RuntimeError,
        ValueError,
    ):  # a name that this system cannot have is no file of it
        return None
    return None


def _rules(file: Path) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # late, as above

    return GitIgnoreSpec.from_lines(file.read_text(encoding="utf-8", errors="replace").splitlines())
