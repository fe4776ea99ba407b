"""What two runs printed, compared without what differs by chance."""

import pytest

from compilediag.trials.measured_run import compare_outputs


@pytest.fixture
def compare(tmp_path):
    def run(without, with_plan):
        files = [[], []]
        for side, texts in enumerate((without, with_plan)):
            for number, text in enumerate(texts):
                file = tmp_path / f"{side}-{number}"
                file.write_bytes(text.encode())
                files[side].append(file)
        return compare_outputs(*files)

    return run


@pytest.mark.parametrize(
    ("without", "with_plan"),
    [
        (["", ""], ["", ""]),
        (["loss 2.5\n", "loss 2.5\n"], ["loss 2.5\n"]),
        (["loss 2.5000\n", "loss 2.5000\n"], ["loss 2.5001\n"]),
        (["<f at 0x7f12>\n", "<f at 0x7f12>\n"], ["<f at 0x8aff>\n"]),
        (
            ["run 3f2e1c04-0d5b-4e6f-8a9b-0c1d2e3f4a5b\n", "run 9a8b7c6d-1234-4abc-9def-5e6f7a8b9c0d\n"],
            ["run 00e11aab-77cd-4e01-b2c3-d4e5f6a7b8c9\n"],
        ),
        (["step 1: 0.5 s, 3 it/s\n", "step 1: 0.5 s, 3 it/s\n"], ["step 1: 12 ms, 70 it/s\n"]),
        (["2026-11-22 07:08:11 done\n", "2026-11-22 07:08:11 done\n"], ["2026-11-22 09:00:00 done\n"]),
        (["pid 12\nloss 1\n", "pid 13\nloss 1\n"], ["pid 99\nloss 1\n"]),
        (["seed a\n", "seed b c\n"], ["seed d e f\n"]),
        (["one 0.1 two 5\n", "one 0.9 two 5\n"], ["one 7.0 two 5\n"]),
        (["\xff\xfe", "\xff\xfe"], ["\xff\xfe"]),
    ],
)
def test_what_differs_by_chance_is_ignored(compare, without, with_plan):
    assert compare(without, with_plan).is_same is True


@pytest.mark.parametrize(
    ("without", "with_plan", "note"),
    [
        (["loss 2.5\n"] * 2, ["loss 2.6\n"], "the output differs in line 1: `loss 2.6` was `loss 2.5`"),
        (["a\nb 3\n"] * 2, ["a\nb 4\n"], "the output differs in line 2: `b 4` was `b 3`"),
        (["a\n"] * 2, ["a\nb\n"], "the output differs in line 2: it has more lines with the plan"),
        (["a\nb\n"] * 2, ["a\nb\n", "a\n"], "the output differs in line 2: it has fewer lines with the plan"),
        (["one 0.1 two 5\n", "one 0.9 two 5\n"], ["one 0.1 two 6\n"], "the output differs in line 1"),
    ],
)
def test_other_output_is_named_by_its_line(compare, without, with_plan, note):
    found = compare(without, with_plan)
    assert found.is_same is False and found.note.startswith(note)


def test_what_cannot_be_compared_says_why(compare):
    found = compare(["a\n", "a\nb\n"], ["a\n"])
    assert found.is_same is None and found.note == "two runs without the plan print different numbers of lines"
    found = compare(["a\n"], ["b\n"])
    assert found.is_same is None and found.note.endswith("maybe by chance: use --runs 2")


def test_output_without_line_ends_is_compared_in_parts(compare):
    text = "x" * 1_000_000
    assert compare([text, text], [text]).is_same is True
    assert compare([text, text], [f"{text[:-1]}y"]).is_same is False
