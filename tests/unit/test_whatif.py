"""What other choices would have needed, by hand-made tables whose answers can be counted."""

import pytest

from tests.unit.tables_builder import FORWARD, changes, compiled, sizes


@pytest.fixture
def compare_choices(session_of):
    def compare(*events, buckets=None):
        session = session_of(*events)
        return session.what_if(session.findings()[0], buckets)

    return compare


def test_a_size_that_varies(compare_choices):
    found = compare_choices(*sizes("17", "30", "33", "60", "100"))
    counts = {choice.name: choice.compiles for choice in found.choices}
    assert found.recorded == 5
    assert counts["static"] == 5
    assert counts["dynamic"] == 1
    assert counts["padded to powers of two"] == 3  # 32, 64, 128
    assert counts["padded to multiples of 32"] == 3  # 32, 64, 128
    assert counts["padded to 100"] == 1
    powers = found.choice("padded to powers of two")
    assert powers.buckets == (32, 64, 128)
    assert powers.waste == pytest.approx((32 + 32 + 64 + 64 + 128) / (17 + 30 + 33 + 60 + 100) - 1)
    assert found.choice("static").waste is None


def test_buckets_of_the_callers(compare_choices):
    found = compare_choices(*sizes("17", "30", "33", "60"), buckets=(40, 64))
    chosen = found.choice("padded to the buckets given")
    assert (chosen.compiles, chosen.buckets) == (2, (40, 64))
    assert chosen.waste == pytest.approx((40 * 3 + 64) / 140 - 1)
    with pytest.raises(ValueError, match="which is 60"):
        compare_choices(*sizes("17", "60"), buckets=(32,))
    with pytest.raises(ValueError, match="which is 60"):
        compare_choices(*sizes("17", "60"), buckets=())


def test_sizes_0_and_1_stay_on_their_own(compare_choices):
    assert compare_choices(*sizes("4", "6", "1", "0", "9")).choice("dynamic").compiles == 3
    assert compare_choices(*sizes("0", "1")).choice("dynamic").compiles == 2
    assert compare_choices(*sizes("0", "1")).choice("padded to 1").waste == 1.0


def test_a_number_is_not_padded(compare_choices):
    found = compare_choices(*changes("k", "value", "3", "9", "5"))
    assert [choice.name for choice in found.choices] == ["static", "dynamic"]


def test_what_leaves_no_choice(compare_choices):
    assert compare_choices(*changes("k", "value", "'a'", "'b'")) is None
    assert compare_choices(*changes("x.dtype", "tensor_dtype", "torch.float32", "torch.float64")) is None


def test_a_limit(session_of):
    rows = changes("self.step", "value", *map(str, range(2, 11)))
    hit = compiled(limit="recompile_limit", outcome="failed", time_ns=20 * 10**9, **FORWARD)
    session = session_of(*rows, hit)
    limit = next(f for f in session.findings() if f.rule == "recompile_limit")
    found = session.what_if(limit)
    assert found.recorded == 8  # The ninth was refused.
    assert found.choice("a higher limit").compiles == 9
    assert found.choice("self.step dynamic").compiles == 1


def test_it_reads_as_text(compare_choices):
    text = str(compare_choices(*sizes("4", "6", "7")))
    assert text.startswith("x.shape[0]: 3 values took 3 compiles\n  static: 3 compiles\n  dynamic: 1 compile\n")
    assert "padded to powers of two: 2 compiles, 18 % more to compute" in text
