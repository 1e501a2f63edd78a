"""Weights: the files of models that were installed as packages, found and checked."""

import hashlib
import importlib.util
import mmap
from pathlib import Path

from keepsake.services.embed import ModelBroken


def folder(package: str) -> Path:
    """Find where a package is installed, without running any of its code."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModelBroken(f"The package {package} is not installed. Reinstall Keepsake with its dependencies.")
    return Path(spec.submodule_search_locations[0])


def opened(path: Path, sha256: str) -> mmap.mmap:
    """Map a file into memory after checking that it is the one with this digest."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise ModelBroken(f"Cannot read the model file {path}: {error}. Reinstall its package.") from error
    found = hashlib.sha256(mapped).hexdigest()
    if found != sha256:
        raise ModelBroken(
            f"The model file {path} is not the one Keepsake was tested with: "
            f"its sha256 is {found}, expected {sha256}. Reinstall its package."
        )
    return mapped
