"""The default image model: eager torch against the engine, in float and in INT8.

Images per CPU second on one thread, ways taking turns. The limit beside it: what the processor's
multipliers give in a large matrix product, divided by what one image needs. In bytes, a processor
without dot-product instructions (AVX2) does at most twice as many products as in floats.
"""

import io
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from engines.contracts.vision import EmbedParams
from engines.errors import EngineError
from engines.runtime.backends import open_session
from engines.runtime.choice import check_reference, choose_session
from engines.runtime.session import NetworkSource, Session, SessionOptions
from engines.vision.calibration_set import CalibrationSet
from engines.vision.efficientnet_engine import (
    EfficientNetEngine,
    network_source,
    reference,
    reference_pixels,
)
from engines.vision.efficientnet_int8 import GateReport, calibrated, judge, open_int8
from flows.bench import BenchRow

RATIO = 5.0
_NUM_PICTURES = 16
_ROUNDS = 3
_BATCHES = (1, 4, 8)
_MULTIPLICATIONS = 0.385e9
"""Of one 224 x 224 image through EfficientNet-Lite0."""
_MATRIX = 1024
_BYTE_GAIN = 2.0
_NOISE_PICTURES = 24
_JUDGED = 64
_END_TO_END = 24
OPTIONS = SessionOptions(threads=1)
"""Both ways on one thread: several wait for each other in loops that count as CPU time, which on
a busy machine makes torch's default look ten times worse than it is."""


def image_rows(cache_dir: Path, samples: Path | None) -> list[BenchRow]:
    """Speed, and with real pictures in ``samples`` the gate, its refusal, and end to end."""
    source = network_source(cache_dir)
    options = replace(OPTIONS, cache_dir=cache_dir)
    pixels = reference_pixels(_NUM_PICTURES)
    session, _ = choose_session(
        source,
        options,
        reference(),
        ("openvino", "onnxruntime", "tensorrt"),
        timing_rows={"pixels": pixels[:8]},
        cache_dir=cache_dir,
    )
    ways: dict[str, Session] = {"naive": open_session("torch", source, options), "f32": session}
    if samples is None:
        return [_speed_row(ways, pixels, None)]
    int8 = replace(options, precision="int8")
    try:
        ways["int8"], report = open_int8(source, int8, "openvino", samples, cache_dir)
    except EngineError as problem:
        return [_speed_row(ways, pixels, str(problem))]
    rows = [_speed_row(ways, pixels, report.refusal), _gate_row(report)]
    rows.append(_refusal_row(source, session, samples, cache_dir))
    rows.append(_whole_row(cache_dir, samples))
    return rows


def _speed_row(
    ways: dict[str, Session], pixels: npt.NDArray[np.uint8], refusal: str | None
) -> BenchRow:
    """The naive way is one image at a time; its larger batches are shown and no faster here."""
    seconds = turns(
        {
            f"{name}_batch_{size}": partial(_run_all, session, pixels, size)
            for name, session in ways.items()
            for size in _BATCHES
        }
    )
    speed = {name: len(pixels) / spent for name, spent in seconds.items()}
    usable = ["f32", "int8"] if "int8" in ways and refusal is None else ["f32"]
    chosen = max((f"{w}_batch_{b}" for w in usable for b in _BATCHES), key=lambda n: speed[n])
    ratio = speed[chosen] / speed["naive_batch_1"]
    peak = _peak_multiplications_per_s()
    limit = peak / _MULTIPLICATIONS
    return BenchRow(
        name="image model efficientnet-lite0, network alone",
        figures={
            "ratio": round(ratio, 2),
            "chosen": chosen,
            "ratio_f32": round(
                max(speed[f"f32_batch_{b}"] for b in _BATCHES) / speed["naive_batch_1"], 2
            ),
            **{f"images_per_cpu_s_{name}": round(value, 1) for name, value in speed.items()},
            "peak_gflops_f32": round(2 * peak / 1e9, 1),
            "limit_images_per_cpu_s_f32": round(limit, 1),
            "limit_images_per_cpu_s_int8_avx2": round(_BYTE_GAIN * limit, 1),
            "limit_ratio": round(_BYTE_GAIN * limit / speed["naive_batch_1"], 2),
            "max_error_f32": check_reference(ways["f32"], reference()),
            "int8": refusal or ("passed its gate" if "int8" in ways else "no pictures given"),
        },
        must=f"ratio >= {RATIO:g}",
        holds=ratio >= RATIO,
    )


def _gate_row(report: GateReport) -> BenchRow:
    return BenchRow(
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


def _refusal_row(
    source: NetworkSource, original: Session, samples: Path, cache_dir: Path
) -> BenchRow:
    """A calibration on faint noise, as a covered lens gives it, must not pass the gate.

    Full-range noise is shown beside it: it drives the network further than pictures do, so that
    its ranges are too wide and not too narrow, which costs less.
    """
    rng = np.random.default_rng(21)
    shape = (_NOISE_PICTURES, 64, 64, 3)
    kinds = {
        "faint_noise": rng.normal(128, 4, shape).clip(0, 255).astype(np.uint8),
        "full_range_noise": rng.integers(0, 256, shape, dtype=np.uint8),
    }
    pictures = list(CalibrationSet(samples).gate())[:: max(1, 256 // _JUDGED)]
    figures: dict[str, float | int | str | None] = {}
    refused = False
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
        refused = refused or (name == "faint_noise" and report.refusal is not None)
    return BenchRow(
        name="INT8 calibrated on faint noise is refused",
        figures=figures,
        must="refused",
        holds=refused,
    )


def _whole_row(cache_dir: Path, samples: Path) -> BenchRow:
    """JPEG in, labels out: a script with PIL and torch, one view; and the engine with its two."""
    pictures = []
    for picture in list(CalibrationSet(samples).gate())[:: 256 // _END_TO_END][:_END_TO_END]:
        stream = io.BytesIO()
        Image.fromarray(picture).save(stream, "JPEG", quality=90)
        pictures.append(stream.getvalue())
    model = network_source(cache_dir).make_torch
    assert model is not None
    module = model()
    params = EmbedParams(threads=1, precision="int8", calibration=str(samples))
    engine = EfficientNetEngine(params, cache_dir)
    opened = [np.asarray(Image.open(io.BytesIO(data)).convert("RGB")) for data in pictures]

    def naive() -> None:
        torch.set_num_threads(1)
        with torch.inference_mode():
            for data in pictures:
                image = Image.open(io.BytesIO(data)).convert("RGB").resize((224, 224))
                module(torch.from_numpy(np.array(image))[None])  # type: ignore[operator]

    def ours() -> None:
        for start in range(0, len(opened), params.batch_size):
            batch = pictures[start : start + params.batch_size]
            engine.see([np.asarray(Image.open(io.BytesIO(d)).convert("RGB")) for d in batch])

    seconds = turns({"naive": naive, "engine": ours})
    return BenchRow(
        name="image model end to end, JPEG in, labels out (the engine looks twice at each)",
        figures={
            "pictures_per_cpu_s_naive_one_view": round(len(pictures) / seconds["naive"], 1),
            "pictures_per_cpu_s_engine_two_views": round(len(pictures) / seconds["engine"], 1),
            "ratio_per_view": round(2 * seconds["naive"] / seconds["engine"], 2),
            "degraded": "; ".join(engine.degraded) or "no",
        },
        must=None,
        holds=None,
    )


def _run_all(session: Session, pixels: npt.NDArray[np.uint8], batch: int) -> None:
    for start in range(0, len(pixels), batch):
        session.run({"pixels": pixels[start : start + batch]})


def turns(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Least CPU seconds of each way over the rounds, after one to warm up.

    One after the other in each round: a change in the machine's speed meets all.
    """
    least = dict.fromkeys(ways, float("inf"))
    for turn in range(_ROUNDS + 1):
        for name, way in ways.items():
            start = time.process_time()
            way()
            if turn:
                least[name] = min(least[name], time.process_time() - start)
    return least


def _peak_multiplications_per_s() -> float:
    torch.set_num_threads(1)
    a = torch.rand(_MATRIX, _MATRIX)
    seconds = turns({"product": lambda: a @ a})["product"]
    return float(_MATRIX**3 / seconds)
