"""Made-up memories whose words are as unevenly common as real ones."""

import random

TOPICS = (
    "billing search login export invoice webhook cache upload profile report calendar backup import mobile payment"
    " gateway dashboard notification permission schema migration cluster deployment monitoring pipeline"
).split()
PEOPLE = "Marta Jonas Aisha Pedro Lena Victor Chidi Yuki Nora Samir Olga Felix Ines Tomas Greta".split()
VERBS = "prefers uses moved rejected replaced approved measured broke fixed renamed documented disabled".split()
THINGS = (
    "PostgreSQL Redis Python TypeScript Kubernetes Terraform GraphQL Kafka SQLite nginx React feature flags rate"
    " limits retries timeouts indexes queues tests"
).split()
PLACES = "Frankfurt Dublin Oregon Singapore staging production the laptop CI".split()
REASONS = "because the user asked for it|after the incident in|to save tokens during|since the team decided on"
SYLLABLES = "ba ke li mo nu ra se ti vo zu pa de fi go hu".split()


def rare(random_: random.Random) -> str:
    """A word that hardly any other memory has."""
    return "".join(random_.choice(SYLLABLES) for _ in range(4))


def memories(count: int, seed: int = 1) -> list[str]:
    """So many memories; `user`, `team` and the like stand in a large share of them."""
    random_ = random.Random(seed)
    made = []
    for _ in range(count):
        reason = random_.choice(REASONS.split("|"))
        made.append(
            f"{random_.choice(PEOPLE)} {random_.choice(VERBS)} {random_.choice(THINGS)} for the"
            f" {random_.choice(TOPICS)} service in {random_.choice(PLACES)} {reason}"
            f" {random_.choice(TOPICS)} {rare(random_)}"
        )
    return made


def questions(count: int, known: list[str], seed: int = 2) -> list[str]:
    """Questions, half of them made of common words only."""
    random_ = random.Random(seed)
    asked = []
    for n in range(count):
        if n % 2:
            asked.append(f"What did the team decide for the {random_.choice(TOPICS)} service because the user asked?")
        else:
            asked.append(f"Who {random_.choice(VERBS)} {random_.choice(known).split()[-1]}?")
    return asked
