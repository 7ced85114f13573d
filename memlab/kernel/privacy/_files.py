"""Files that usually hold secrets, and files that a project's ignore files exclude.

Files that hold secrets are recognised by their paths. Their contents are not read.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


# Only memlab reads ``.secretsignore``. It lists files that are in version control and must not be read.
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
"""Patterns of files that hold secrets, in the syntax of .gitignore."""


@cache  # compiling the patterns takes a millisecond, and most memories point to no file
def _sensitive() -> GitIgnoreSpec:
    """Return the compiled patterns of files that usually hold secrets."""
    from pathspec import GitIgnoreSpec  # imported late, because most memories point to no file

    return GitIgnoreSpec.from_lines(SENSITIVE.lower().splitlines())


def is_sensitive(path: str) -> bool:
    """Return whether a path names a file that usually holds secrets.

    Upper and lower case are equal, and so are slashes and backslashes.

    >>> is_sensitive("deploy/.env"), is_sensitive("src/.env.example"), is_sensitive("~/.ssh/id_rsa")
    (True, False, True)
    """
    plain = PurePosixPath(path.replace("\\", "/").lower())
    parts = [part for part in plain.parts if part not in ("/", "~", ".", "..")]
    return bool(parts) and _sensitive().match_file("/".join(parts))


def split_sensitive(paths: Iterable[str] | None) -> tuple[list[str] | None, tuple[str, ...]]:
    """Split paths into storable paths (None if there are none) and sensitive paths."""
    if not paths:
        return None, ()
    listed = list(paths)
    sensitive = tuple(path for path in listed if is_sensitive(path))
    return [path for path in listed if path not in sensitive] or None, sensitive


class Ignored:
    """The files that a folder's ignore files exclude, and all sensitive files.

    The ignore files are the folder's own .gitignore and .secretsignore. Those of subfolders are not read.
    """

    def __init__(self, folder: Path) -> None:
        lines = [
            line
            for name in IGNORE_FILES
            if (file := folder / name).is_file()
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
        ]
        from pathspec import GitIgnoreSpec  # imported late, as above

        self._spec = GitIgnoreSpec.from_lines(lines)

    def __contains__(self, path: str) -> bool:
        """Return whether a path, relative to the folder, is excluded or sensitive."""
        return is_sensitive(path) or self._spec.match_file(path)


_MOST_FOLDERS = 40
"""The maximum number of folders above a file whose ignore files are read."""


def find_ignore_file(path: str) -> Path | None:
    """Return the .gitignore or .secretsignore that excludes a file, or None if none does.

    The ignore files of each folder above the file are read, up to the root of its repository (the folder with .git). A
    relative path is resolved if the file exists below the working directory. For a path whose folder is not on this
    machine, the result is None.
    """
    written = Path(path.replace("\\", "/"))
    try:
        file = written.expanduser()
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
    ):  # the path is not valid on this system, so no rule excludes it
        return None
    return None


def _rules(file: Path) -> GitIgnoreSpec:
    """Return the compiled patterns of an ignore file."""
    from pathspec import GitIgnoreSpec  # imported late, as above

    return GitIgnoreSpec.from_lines(file.read_text(encoding="utf-8", errors="replace").splitlines())
