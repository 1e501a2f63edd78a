"""Where the nodes of a picture stand."""

from itertools import combinations

from keepsake.core import layout
from keepsake.core.layout import Layout

#: A tree with a few edges across.
TREE = [(n, n // 2) for n in range(2, 61)] + [(n, n + 7) for n in range(3, 50, 11)]


def shares(drawn: Layout) -> dict[int, tuple[float, float]]:
    return {id: (x / drawn.width, y / drawn.height) for id, (x, y) in drawn.places.items()}


def edges(most: int) -> list[tuple[int, int]]:
    return [(a, b) for a, b in TREE if a <= most and b <= most]


def test_the_same_graph_is_always_drawn_alike_within_its_edges_and_no_label_hides_another() -> None:
    for most in (1, 2, 5, 20, 60):
        drawn = layout.laid(range(1, most + 1), edges(most), {})

        assert drawn == layout.laid(range(1, most + 1), edges(most), {})
        assert len(drawn.places) == most and (drawn.width, drawn.height) == layout.size(most)
        assert all(0 < x < drawn.width and 0 < y < drawn.height for x, y in drawn.places.values())
        hidden = [
            (a, b)
            for (a, (x, y)), (b, (to_x, to_y)) in combinations(drawn.places.items(), 2)
            if abs(x - to_x) < layout.BOX_X - 6 and abs(y - to_y) < layout.BOX_Y - 6
        ]
        assert len(hidden) <= most // 20, hidden


def test_what_is_related_stands_nearer_than_what_is_not() -> None:
    drawn = layout.laid(range(1, 31), edges(30), {})

    def far(a: int, b: int) -> float:
        (x, y), (to_x, to_y) = drawn.places[a], drawn.places[b]
        return float(((x - to_x) ** 2 + (y - to_y) ** 2) ** 0.5)

    related = [far(a, b) for a, b in edges(30)]
    all_of = [far(a, b) for a, b in combinations(range(1, 31), 2)]
    assert sum(related) / len(related) < 0.7 * sum(all_of) / len(all_of)


def test_a_new_node_stands_beside_its_own_and_the_others_hardly_move() -> None:
    before = shares(layout.laid(range(1, 20), edges(19), {}))
    after = shares(layout.laid(range(1, 21), edges(20), before))

    moved = [max(abs(after[id][0] - x), abs(after[id][1] - y)) for id, (x, y) in before.items()]
    assert max(moved) < 0.2 and sum(moved) / len(moved) < 0.08


def test_the_chosen_node_is_in_the_middle_and_more_nodes_than_fit_are_left_out() -> None:
    drawn = layout.laid(range(1, 100), edges(60), {}, middle=7)

    assert len(drawn.places) == layout.MOST
    assert drawn.places[7] == (drawn.width / 2, drawn.height / 2)


def test_a_digest_tells_graphs_apart_and_not_their_order() -> None:
    assert layout.digest([1, 2], [(1, 2)]) == layout.digest([2, 1], [(1, 2), (1, 2)])
    assert layout.digest([1, 2], [(1, 2)]) != layout.digest([1, 2], [(2, 1)])
