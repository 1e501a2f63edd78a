"""Prometheus metrics: calls by operation and outcome, their time, and the work that waits."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from keepsake.context import App
from keepsake.core import meter
from keepsake.ops import health

REGISTRY = CollectorRegistry()
CALLS = Counter("keepsake_calls_total", "Calls by operation and outcome.", ["operation", "outcome"], registry=REGISTRY)
SECONDS = Histogram("keepsake_call_seconds", "Time of a call by operation.", ["operation"], registry=REGISTRY)
FACTS = Counter(
    "keepsake_extracted_facts_total",
    "Facts that the language model told, by what became of them.",
    ["outcome"],
    registry=REGISTRY,
)
JOBS = Gauge("keepsake_jobs", "Jobs by state.", ["state"], registry=REGISTRY)


def measure() -> None:
    """Listen to every call of this process."""

    def observed(operation: str, outcome: str, seconds: float) -> None:
        CALLS.labels(operation, outcome).inc()
        SECONDS.labels(operation).observe(seconds)

    def counted(what: str, outcome: str, amount: int) -> None:
        if what == "facts":
            FACTS.labels(outcome).inc(amount)

    meter.to(observed)
    meter.count_to(counted)


async def exposition(app: App) -> str:
    """All of it, as Prometheus reads it."""
    JOBS.clear()
    for state, count in (await health.waiting(app)).items():
        JOBS.labels(state).set(count)
    return generate_latest(REGISTRY).decode()
