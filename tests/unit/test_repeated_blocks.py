"""Identical blocks of a graph, from its calls and the modules around them."""

from compilediag.sources.dynamo.compiles import MIN_BLOCKS, find_repeated_blocks


class Model:
    pass


class Block:
    pass


class Norm:
    pass


def calls(path, cls, *names, inside=(), shape=(2, 8)):
    """Calls of a module at `path`, within the modules `inside` and the model."""
    modules = (("L['self']", Model), *inside, (path, cls))
    return [(modules, ("call_function", name, shape)) for name in names]


def block(number, *names, shape=(2, 8)):
    """Calls of one block, the first two within its norm."""
    path = f"L['self'].layers.{number}"
    outer = [(path, Block)]
    return [
        *calls(f"{path}.norm", Norm, "mean", "rsqrt", "mul", "add", inside=outer, shape=shape),
        *calls(path, Block, *names, shape=shape),
    ]


NAMES = ("linear", "relu")


def test_the_class_that_covers_most_of_the_graph_counts():
    ops = [op for number in range(4) for op in block(number, *NAMES)] + calls("L['self'].head", Norm, "linear")
    assert find_repeated_blocks(ops) == {
        "class": "Block",
        "module": __name__,
        "path": "L['self'].layers.0",
        "count": 4,
        "ops": 6,
        "graph_ops": 25,
    }


def test_blocks_with_other_calls_or_sizes_are_not_identical():
    ops = [*block(0, *NAMES), *block(1, *NAMES), *block(2, "linear", "gelu"), *block(3, *NAMES, shape=(2, 4))]
    found = find_repeated_blocks(ops)
    assert found is not None and (found["class"], found["count"]) == ("Norm", 3)


def test_few_or_small_blocks_are_no_note():
    assert find_repeated_blocks([op for number in range(MIN_BLOCKS - 1) for op in block(number, *NAMES)]) is None
    assert find_repeated_blocks([op for n in range(9) for op in calls(f"L['self'].{n}", Norm, "add")]) is None
    assert find_repeated_blocks([]) is None
