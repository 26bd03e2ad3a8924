"""One measurement of a candidate by the native loop, with outputs of a few calls kept."""

from typing import Any

from evaluator_svc.messages.measurement import KeptOutput, RedrawRows
from evaluator_svc.messages.native_measurement import clock_blocks, measure_options
from evaluator_svc.messages.runner import TimeReply, TimeRequest
from evaluator_svc.processes.locked_process import OpenDevice
from evaluator_svc.runner.faults import memory_faults
from evaluator_svc.runner.guest_inputs import GuestInputs
from evaluator_svc.runner.input_pool import TimedSets
from evaluator_svc.runner.loaded_sequence import LoadedSequence
from evaluator_svc.runner.surroundings import Range
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.evaluation import StopReason


def timed_sequence(opened: OpenDevice, loaded: LoadedSequence) -> Any:
    """Return the native sequence to time: the loaded one's own, or its graphs if there are any."""
    if loaded.library is None or opened.device.is_host_memory:
        return loaded.native  # a sequence of launches alone makes its graph itself
    from evaluator_svc.runner.graph_capture import capture_graphs

    return capture_graphs(opened, loaded) or loaded.native


def take_times(
    sequence: Any,
    loaded: LoadedSequence,
    pool: TimedSets,
    request: TimeRequest,
    preparation: LoadedSequence | None = None,
    *,
    idle: tuple[Range, ...] = (),
    guests: GuestInputs | None = None,
    call_draws: int = -1,
) -> TimeReply:
    """Measure; kept outputs go into the output slots 0, 1, … of their seed's shared buffer.

    `preparation`: `prepare` on the pool's sets, run and timed before each call where inputs are
    redrawn; what it made stays that of the last call. `idle`: unused output slots, overwritten
    before each call. `guests`: inputs of calls among the timed ones.
    `call_draws`: descriptor of what decides about calls; without one the system does.
    """
    outputs = [
        (index, slot)
        for slot in pool.shared.outputs
        if slot.size_bytes and (index := loaded.buffer_index(slot.name)) is not None
    ]
    slots = [slot for _, slot in outputs]
    if not request.settings.redraw_key:
        preparation = None  # what was prepared stays
    with memory_faults("memory for outputs of timed calls"):
        keep_into = pool.set_aside(slots, request.keep_count)
    around = () if guests is None else guests.guards()
    cover = None
    if preparation is not None:
        lent = () if guests is None else guests.covered()
        cover = preparation.device.cover([*pool.covered(), *lent])
    measurement = sequence.measure(
        measure_options(
            loaded.module.MeasureOptions,
            request.settings,
            set_count=pool.set_count,
            keep_count=request.keep_count,
            call_draws=call_draws,
        ),
        flush_bytes=request.settings.flush_bytes,
        outputs=[(i, slot.size_bytes) for i, slot in outputs] if request.poison else [],
        # Which seed a kept call will have had is known only afterwards: first it is set aside.
        keep_into=keep_into,
        scratch=loaded.scratch if request.poison else (),
        redraw=redraw_rows(pool, request.settings.redraw_key),
        preparation=None if preparation is None else preparation.native,
        prepared=loaded.prepared if preparation is not None else (),
        weights=[
            number
            for number, slot in enumerate(pool.shared.inputs)
            if slot.role != TensorRole.INPUT.value
        ],
        sealed_into=[loaded.sealed_into(pool.seed_of(i)) for i in range(pool.set_count)],
        guards=(*loaded.guards, *pool.guards(), *idle, *around) if request.poison else (),
        guests=None if guests is None else guests.rows(pool, request.guest_seeds, slots),
        library_memory=loaded.library_memory if request.poison else None,
        cover=cover,
    )
    if request.poison:
        pool.check()
    loaded.forget_results()
    if preparation is not None:
        preparation.forget_results()
    sets = [index for _call, index in measurement.kept]
    seeds = [pool.seed_of(index) for index in sets]
    pool.keep(slots, sets)
    return TimeReply(
        samples_ns=tuple(measurement.samples_ns),
        device_ns=tuple(measurement.device_ns),
        stop_reason=StopReason(measurement.stop_reason),
        warmup_count=measurement.warmup_count,
        discarded_count=measurement.discarded_count,
        kept=tuple(KeptOutput(seed=seed, slot=slot) for slot, seed in enumerate(seeds)),
        host_ns=tuple(measurement.host_ns),
        prepare_ns=tuple(measurement.prepare_ns),
        guest_calls=measurement.guest_calls,
        clocks=clock_blocks(measurement),
    )


def redraw_rows(pool: TimedSets, key: int) -> RedrawRows | None:
    """Return what the native loop is to redraw; None where nothing is."""
    chosen = [(n, slot) for n, slot in enumerate(pool.shared.inputs) if slot.redrawn_as]
    if not key or not chosen:
        return None
    return (
        key,
        [(slot.redrawn_as, slot.size_bytes, number) for number, slot in chosen],
        [
            [pool.addresses(index)[slot.name] for _, slot in chosen]
            for index in range(pool.set_count)
        ],
    )
