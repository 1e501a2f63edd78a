"""What a file, a command or a text is about, by the words in it."""

import re

_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]{2,}|[a-z]+")
#: A concept and the beginnings of words that tell of it.
_TABLE: dict[str, tuple[str, ...]] = {
    "security": (
        *("auth", "jwt", "token", "password", "oauth", "permission", "crypto", "encrypt", "csrf", "xss", "secret"),
        *("login", "credential", "sanitiz", "tls", "ssl"),
    ),
    "api": ("api", "route", "router", "endpoint", "controller", "graphql", "rest", "grpc", "webhook"),
    "middleware": ("middleware", "interceptor"),
    "testing": ("test", "spec", "jest", "pytest", "vitest", "mock", "fixture", "playwright", "cypress"),
    "database": (
        *("sql", "sqlite", "postgres", "mysql", "mongo", "redis", "prisma", "migration", "migrations", "schema", "orm"),
        *("database", "db"),
    ),
    "frontend": ("component", "tsx", "jsx", "vue", "svelte", "css", "scss", "html", "react", "tailwind"),
    "configuration": ("config", "configuration", "settings", "toml", "yaml", "yml", "env", "ini"),
    "build": ("webpack", "vite", "docker", "dockerfile", "makefile", "cargo", "gradle", "maven", "rollup", "esbuild"),
    "dependencies": ("package", "requirements", "lockfile", "dependency", "dependencies", "npm", "pip", "pnpm", "yarn"),
    "ci": ("workflow", "workflows", "pipeline", "jenkins", "gitlab", "circleci"),
    "documentation": ("readme", "docs", "md", "changelog", "documentation", "rst"),
    "performance": ("cache", "caching", "perf", "performance", "optimiz", "benchmark", "profil", "latency"),
    "error-handling": ("exception", "errors", "retry", "fallback", "catch", "rescue", "panic"),
    "concurrency": ("async", "await", "mutex", "lock", "thread", "queue", "worker", "concurren", "semaphore"),
    "deployment": ("deploy", "kubernetes", "terraform", "helm", "ansible", "release"),
    "logging": ("logger", "logging", "metrics", "tracing", "telemetry", "sentry"),
    "git": ("git", "commit", "merge", "rebase", "cherry"),
    "refactoring": ("refactor", "rename", "cleanup", "deprecat"),
}
#: Beginnings of this length need not be the whole word.
_STEM = 5
MOST = 5


def of(place: str, content: str) -> tuple[str, ...]:
    """The concepts of a path or command, then those that its content is full of."""
    near = {word.lower() for word in _WORD.findall(place)}
    far: dict[str, int] = {}
    for word in _WORD.findall(content[:4_000]):
        far[word.lower()] = far.get(word.lower(), 0) + 1
    found = {name: _weight(near, far, words) for name, words in _TABLE.items()}
    ranked = sorted((name for name, weight in found.items() if weight >= 2), key=lambda name: (-found[name], name))
    return tuple(ranked[:MOST])


def _weight(near: set[str], far: dict[str, int], words: tuple[str, ...]) -> int:
    """What stands in a path counts at once; in a content only what is said twice."""
    weight = 0
    for word in words:
        weight += 3 * sum(_fits(word, one) for one in near)
        weight += sum(count for one, count in far.items() if _fits(word, one))
    return weight


def _fits(word: str, one: str) -> bool:
    return one in (word, f"{word}s") or (len(word) >= _STEM and one.startswith(word))
