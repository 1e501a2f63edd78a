"""The locks: pinned, hashed, silent about where packages come from, and without what we never import."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-test.lock")
LEFT_OUT = ("huggingface_hub", "hf_xet", "requests", "safetensors", "toml", "tqdm", "fsspec")


def pins(lock: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^\s;]+)", (ROOT / lock).read_text("utf-8"), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_nothing_but_pins_and_their_hashes(lock: str) -> None:
    line = re.compile(r"#.*|[a-z0-9-]+==[^\s;]+( ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")

    other = [text for text in (ROOT / lock).read_text("utf-8").splitlines() if not line.fullmatch(text)]

    assert other == []


def test_tests_run_on_what_is_installed() -> None:
    runtime, test = (pins(lock) for lock in LOCKS)

    assert {name: test.get(name) for name in runtime} == runtime


def test_what_we_never_import_is_not_installed() -> None:
    assert pins("requirements.lock").keys() & {name.replace("_", "-") for name in LEFT_OUT} == set()


def test_models_embed_while_those_packages_are_missing() -> None:
    script = f"""
import sys
for name in {LEFT_OUT!r}:
    sys.modules[name] = None
from keepsake.services import embed
print([embed.static().embed(["tea"]).shape, embed.sharp().embed(["tea"]).shape])
"""

    ran = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, cwd=ROOT)

    assert (ran.stdout.strip(), ran.stderr) == ("[(1, 256), (1, 384)]", "")
