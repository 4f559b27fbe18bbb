"""The default image model: eager torch against the engine, in float and in INT8.

Two rows of speed: what a machine gives with all its cores, torch as a script has it (one image at
a time, torch's own number of threads) against the engine as the stage runs it; and images per CPU
second on one thread. Beside the second, the limit: what the processor's multipliers give in a
large matrix product, divided by what one image needs. In bytes, a processor without dot-product
instructions (AVX2) does at most twice as many products as in floats. Ways take turns.
"""

import io
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from engines.contracts.vision import EmbedParams
from engines.runtime.backends import open_session
from engines.runtime.choice import check_reference, choose_session
from engines.runtime.session import Session, SessionOptions
from engines.vision.calibration_set import CalibrationSet
from engines.vision.efficientnet_engine import (
    EfficientNetEngine,
    network_source,
    reference,
    reference_pixels,
)
from engines.vision.efficientnet_int8 import calibrated, judge, open_int8
from flows.bench import BenchRow

SAMPLES = "samples"
"""Folder of the sampled pictures."""
RATIO = 5.0
_NUM_PICTURES = 16
_ROUNDS = 3
"""The best one counts: the rest of the machine can only make a round slower."""
_BATCHES = (1, 4, 8)
_MULTIPLICATIONS = 0.385e9
"""Of one 224 x 224 image through EfficientNet-Lite0."""
_MATRIX = 1024
_BYTE_GAIN = 2.0
_NOISE_PICTURES = 24
_JUDGED = 64
_END_TO_END = 24
OPTIONS = SessionOptions(threads=1)
"""One thread: several wait for each other in loops that count as CPU time."""


def machine_rows(cache_dir: Path, folder: Path) -> list[BenchRow]:
    """Images per second of the whole machine.

    Args:
        cache_dir: of converted networks.
        folder: INT8 is measured where it holds pictures in ``samples/``.
    """
    cores = len(os.sched_getaffinity(0))
    options = replace(OPTIONS, threads=cores, streams=cores)
    return [_machine_row(*_ways(cache_dir, folder, options), cores)]


def thread_rows(cache_dir: Path, folder: Path) -> list[BenchRow]:
    """Images per CPU second of one thread; arguments as for ``machine_rows``."""
    return [_thread_row(*_ways(cache_dir, folder, OPTIONS))]


def _ways(cache_dir: Path, folder: Path, options: SessionOptions) -> tuple[dict[str, Session], str]:
    """Sessions by name, and what became of INT8: it is among them only if it may be used."""
    source = network_source(cache_dir)
    options = replace(options, cache_dir=cache_dir)
    session, _ = choose_session(
        source,
        options,
        reference(),
        ("openvino", "onnxruntime", "tensorrt"),
        timing_rows={"pixels": reference_pixels(8)},
        cache_dir=cache_dir,
    )
    ways: dict[str, Session] = {"naive": open_session("torch", source, options), "f32": session}
    samples = folder / SAMPLES
    if not samples.is_dir():
        return ways, "no pictures given"
    int8, report = open_int8(
        source, replace(options, precision="int8"), "openvino", samples, cache_dir
    )
    if report.refusal is not None:
        return ways, report.refusal
    return {**ways, "int8": int8}, "passed its gate"


def _speeds(
    ways: Mapping[str, Session],
    sizes: Mapping[str, tuple[int, ...]],
    threads: int,
    clock: Callable[[], float],
) -> dict[str, float]:
    """Images per second by way and size of batch; torch gets ``threads`` threads."""
    pixels = reference_pixels(_NUM_PICTURES)
    torch.set_num_threads(threads)
    jobs = {
        f"{name}_batch_{size}": partial(_run_all, session, pixels, size)
        for name, session in ways.items()
        for size in sizes[name]
    }
    return {name: len(pixels) / spent for name, spent in turns(jobs, clock).items()}


def _machine_row(ways: dict[str, Session], int8: str, cores: int) -> BenchRow:
    """The naive way is one image at a time; its larger batches are shown beside it."""
    ours = tuple(size * cores for size in _BATCHES)
    sizes = {name: (1, 8) if name == "naive" else ours for name in ways}
    speed = _speeds(ways, sizes, cores, time.perf_counter)
    chosen = max((n for n in speed if not n.startswith("naive")), key=lambda n: speed[n])
    naive = max(speed["naive_batch_1"], speed["naive_batch_8"])
    ratio = speed[chosen] / speed["naive_batch_1"]
    return BenchRow(
        name="image model efficientnet-lite0, network alone, all cores",
        figures={
            "ratio": round(ratio, 2),
            "chosen": chosen,
            "ratio_to_the_best_batch_of_torch": round(speed[chosen] / naive, 2),
            "cores": cores,
            **{f"images_per_s_{name}": round(value, 1) for name, value in speed.items()},
            "int8": int8,
        },
        must=f"ratio >= {RATIO:g}",
        holds=ratio >= RATIO,
    )


def _thread_row(ways: dict[str, Session], int8: str) -> BenchRow:
    speed = _speeds(ways, dict.fromkeys(ways, _BATCHES), 1, time.process_time)
    chosen = max((n for n in speed if not n.startswith("naive")), key=lambda n: speed[n])
    peak = _peak_multiplications_per_s()
    limit = peak / _MULTIPLICATIONS
    return BenchRow(
        name="image model efficientnet-lite0, network alone, one thread",
        figures={
            "ratio": round(speed[chosen] / speed["naive_batch_1"], 2),
            "chosen": chosen,
            **{f"images_per_cpu_s_{name}": round(value, 1) for name, value in speed.items()},
            "peak_gflops_f32": round(2 * peak / 1e9, 1),
            "limit_images_per_cpu_s_f32": round(limit, 1),
            "limit_images_per_cpu_s_int8_avx2": round(_BYTE_GAIN * limit, 1),
            "limit_ratio": round(_BYTE_GAIN * limit / speed["naive_batch_1"], 2),
            "max_error_f32": check_reference(ways["f32"], reference()),
            "int8": int8,
        },
        must=None,
        holds=None,
    )


def gate_rows(cache_dir: Path, folder: Path) -> list[BenchRow]:
    """What INT8 by the pictures in ``samples/`` loses, on others of them."""
    source = network_source(cache_dir)
    options = replace(OPTIONS, precision="int8", cache_dir=cache_dir)
    _, report = open_int8(source, options, "openvino", folder / SAMPLES, cache_dir)
    row = BenchRow(
        name="image model in INT8 against float, pictures not calibrated on",
        figures={
            "pictures": report.pictures,
            "expected_loss_points": round(100 * report.expected_loss, 3),
            "top1_agreement": round(report.agreement, 4),
            "top1_agreement_sure": round(report.sure_agreement, 4),
            "sure_pictures": report.sure_pictures,
            "score_drift": round(report.score_drift, 4),
            "feature_cosine": round(report.cosine, 4),
        },
        must="expected loss of top-1 accuracy < 1 point",
        holds=report.refusal is None,
    )
    return [row]


def refusal_rows(cache_dir: Path, folder: Path) -> list[BenchRow]:
    """A calibration on faint noise, as a covered lens gives it, must not pass the gate.

    Full-range noise is shown beside it: it drives the network further than pictures do, so that
    its ranges are too wide and not too narrow, which costs less.
    """
    source = network_source(cache_dir)
    original = open_session("openvino", source, OPTIONS)
    rng = np.random.default_rng(21)
    shape = (_NOISE_PICTURES, 64, 64, 3)
    kinds = {
        "faint_noise": rng.normal(128, 4, shape).clip(0, 255).astype(np.uint8),
        "full_range_noise": rng.integers(0, 256, shape, dtype=np.uint8),
    }
    pictures = list(CalibrationSet(folder / SAMPLES).gate())[:: max(1, 256 // _JUDGED)]
    figures: dict[str, float | int | str | None] = {}
    refused: dict[str, bool] = {}
    for name, noise in kinds.items():
        path = cache_dir / f"calibrated-on-{name}.onnx"
        path.write_bytes(calibrated(source, iter(noise)))
        quantised = open_session(
            "openvino", replace(source, onnx_path=path), replace(OPTIONS, precision="int8")
        )
        report = judge(quantised, original, pictures)
        figures[f"expected_loss_points_{name}"] = round(100 * report.expected_loss, 3)
        figures[f"top1_agreement_{name}"] = round(report.agreement, 4)
        figures[f"refusal_{name}"] = report.refusal or "none"
        refused[name] = report.refusal is not None
    row = BenchRow(
        name="INT8 calibrated on faint noise is refused",
        figures=figures,
        must="refused",
        holds=refused["faint_noise"],
    )
    return [row]


def whole_rows(cache_dir: Path, folder: Path) -> list[BenchRow]:
    """JPEG in, labels out: a script with PIL and torch, one view; and the engine with its two."""
    cores = len(os.sched_getaffinity(0))
    pictures = []
    found = list(CalibrationSet(folder / SAMPLES).gate())
    for picture in found[:: max(1, len(found) // _END_TO_END)][:_END_TO_END]:
        stream = io.BytesIO()
        Image.fromarray(picture).save(stream, "JPEG", quality=90)
        pictures.append(stream.getvalue())
    params = EmbedParams(threads=cores, precision="int8", calibration=str(folder / SAMPLES))
    engine = EfficientNetEngine(params, cache_dir)
    ways: dict[str, Callable[[], None]] = {
        "naive": _naive_script(cache_dir, pictures),
        "engine": partial(_see_all, engine, pictures, params.batch_size),
    }
    torch.set_num_threads(cores)
    wall = turns(ways, time.perf_counter)
    row = BenchRow(
        name="image model end to end, JPEG in, labels out, all cores (the engine looks twice)",
        figures={
            "pictures_per_s_naive_one_view": round(len(pictures) / wall["naive"], 1),
            "pictures_per_s_engine_two_views": round(len(pictures) / wall["engine"], 1),
            "ratio_per_view": round(2 * wall["naive"] / wall["engine"], 2),
            "ratio_per_picture": round(wall["naive"] / wall["engine"], 2),
            "degraded": "; ".join(engine.degraded) or "no",
        },
        must=None,
        holds=None,
    )
    return [row]


def _naive_script(cache_dir: Path, pictures: list[bytes]) -> Callable[[], None]:
    make = network_source(cache_dir).make_torch
    assert make is not None
    module = make()

    def run() -> None:
        with torch.inference_mode():
            for data in pictures:
                image = Image.open(io.BytesIO(data)).convert("RGB").resize((224, 224))
                module(torch.from_numpy(np.array(image))[None])  # type: ignore[operator]

    return run


def _see_all(engine: EfficientNetEngine, pictures: list[bytes], size: int) -> None:
    for start in range(0, len(pictures), size):
        batch = pictures[start : start + size]
        engine.see([np.asarray(Image.open(io.BytesIO(d)).convert("RGB")) for d in batch])


def _run_all(session: Session, pixels: npt.NDArray[np.uint8], batch: int) -> None:
    for start in range(0, len(pixels), batch):
        session.run({"pixels": pixels[start : start + batch]})


def turns(
    ways: Mapping[str, Callable[[], object]], clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Least seconds of each way over the rounds, after one to warm up.

    One after the other in each round: a change in the machine's speed meets all.
    """
    least = dict.fromkeys(ways, float("inf"))
    for turn in range(_ROUNDS + 1):
        for name, way in ways.items():
            start = clock()
            way()
            if turn:
                least[name] = min(least[name], clock() - start)
    return least


def _peak_multiplications_per_s() -> float:
    torch.set_num_threads(1)
    a = torch.rand(_MATRIX, _MATRIX)
    seconds = turns({"product": lambda: a @ a})["product"]
    return float(_MATRIX**3 / seconds)
