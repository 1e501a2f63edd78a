"""What a model's cosines mean: measured once, on pairs of our own, when a model is brought in."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keepsake.services.endpoint import Failed

#: Two texts that say the same or ask and answer, as near as people put things; no pair has to do with another.
PAIRS = (
    ("Where does Marta live now?", "Marta now lives in Oslo, near the harbour."),
    ("Which database do we use in production?", "Our production database is PostgreSQL 16."),
    ("What is Tom allergic to?", "Tom gets a rash from peanuts and carries a pen for it."),
    ("When does the newsletter go out?", "We send the newsletter to subscribers every first Monday."),
    ("Why did the build fail yesterday?", "The nightly build broke because a certificate had expired."),
    ("How does the user like their coffee?", "She takes her coffee black, without sugar."),
    ("Priya has led the design team since June.", "Since June, the design team is led by Priya."),
    ("What should tests never do?", "Rule: no test may reach out to the network."),
    ("Which train does he take to work?", "He commutes on the 7:42 from the central station."),
    ("How much may the kitchen cost?", "They set aside eight thousand euros for the new kitchen."),
    ("Lena is learning the cello.", "Lena has begun to learn to play the cello."),
    ("How do we roll back a release?", "To undo a deployment, point the load balancer at the previous image."),
    ("What did the doctor recommend?", "After the check-up he was told to walk half an hour a day."),
    ("Which language is the parser written in?", "We rewrote the parser in Rust to make it faster."),
    ("What does the customer complain about?", "Invoices reach the client twice, and they are annoyed."),
    ("When is grandfather's birthday?", "Grandpa turns ninety on the third of March."),
    ("What is planted behind the house?", "The back garden has two apple trees and a row of beans."),
    ("How are passwords stored?", "Passwords are hashed with argon2 before they are stored."),
    ("Which film did they see together?", "On Friday the two of them watched a documentary about whales."),
    ("Why was the meeting moved?", "The review was put off until Thursday as half the team was ill."),
)
#: Percentiles that give the packaged models about the scale which they have from thousands of real pairs.
UNRELATED, ANSWERING = 99, 90
#: Below this distance between the two, a model does not tell an answer from anything else.
LEAST = 0.01


@dataclass(frozen=True, slots=True)
class Scale:
    """The cosine of unrelated texts, and of texts that say the same."""

    zero: float
    one: float


def texts() -> list[str]:
    """What the model has to embed: questions first, then their answers."""
    return [question for question, _ in PAIRS] + [answer for _, answer in PAIRS]


def measured(rows: npt.NDArray[np.float32], model: str) -> Scale:
    """The scale on which a model placed the pairs; Failed when it cannot tell them from chance."""
    questions, answers = rows[: len(PAIRS)], rows[len(PAIRS) :]
    cosines = questions @ answers.T
    own = np.eye(len(PAIRS), dtype=bool)
    zero, one = np.percentile(cosines[~own], UNRELATED), np.percentile(cosines[own], ANSWERING)
    if one - zero < LEAST:
        raise Failed(
            f"The model {model} does not tell answers from unrelated texts. Name a model that is made for embeddings."
        )
    return Scale(round(float(zero), 4), round(float(one), 4))
