"""Sessions with many events, for the tests and the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator

from compilediag.events import CacheLookup, Compile, Event, Phase, Recompile

MS = 1_000_000


def many_events(count: int, begin: int) -> Iterator[Event]:
    """Compiles with recompiles, phases and cache look-ups, as a training run of many shapes would give."""
    for n in range(count // 5):
        at = {"compile_id": f"{n % 40}/{n // 40}", "time_ns": begin + n * 20 * MS}
        file = f"/home/somebody/project/models/block_{n % 40}.py"
        place = {"function": f"forward_{n % 40}", "file": file, "line": 30 + n % 40}
        values = {"guard_kind": "tensor_size", "expected": str(n), "actual": str(n + 1)}
        times = {"duration_s": 0.015, "dynamo_s": 0.015, "aot_s": 0.01, "inductor_s": 0.008}
        outcome = {"trigger": "dynamo", "outcome": "ok", "is_recompile": n >= 40, "guard_count": 20, "graph_ops": 12}
        reason = f"tensor 'x' size mismatch at index 0. expected {n}, actual {n + 1}"
        failed = {"guard_source": f"x.size()[{n % 3}]", "reason": reason, "closest_compile_id": f"{n % 40}/0"}
        yield Compile(**at, **place, **outcome, **times)
        yield Recompile(**at, **place, **values, **failed)
        yield Phase(**at, name="entire_frame_compile", depth=0, duration_s=0.015)
        yield Phase(**at, name="inductor_compile", depth=1, duration_s=0.008, parent="entire_frame_compile")
        yield CacheLookup(**at, cache="fx_graph", outcome="miss", key=f"f{n:060x}")


def many_texts(recorded, count: int = 300) -> None:
    """Add `count` artifacts of generated code, 30 kB each."""
    for n in range(count):
        text = "\n".join(
            f"buf{k} = empty_strided_cpu(({n * 31 + k * 7919 % 4093}, 8), (8, 1), torch.float32)" for k in range(500)
        )
        recorded.text("inductor_output_code", text, compile_id=f"{n % 40}/0")
