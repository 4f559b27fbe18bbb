"""Actions from skeletons: ours beside plain ways and published figures, by the set's protocol.

With ``--test`` the network is trained on one file and judged on the other. Without, persons are
left out in turn: by the stored splits where the file has them, else one fold after another (clips
by chance where no persons are named). Ours is the mean probability of five networks and a kernel
machine over covariances. Nothing was chosen on a test file: settings come from leaving persons out
of the training files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.actions.confusions import (
    clip_timings,
    confused_pairs,
    confusion_matrix,
    correct,
    learn_rules,
)
from engines.actions.covariance import describe, fit_kernel_machine, select
from engines.actions.dataset import SkeletonSet, read_set
from engines.actions.normalise import View
from engines.actions.skeleton import JOINTS
from engines.errors import UsageError
from flows.bench import BenchReport, BenchRow
from flows.bench.actions_baselines import plain_ways
from flows.bench.actions_jobs import NOISES, TURNS, Job, Material, Outcome, noise_name, run_jobs
from flows.bench.actions_ours import (
    FLAT,
    Judged,
    accuracy,
    group_folds,
    kernel_views,
    make_material,
)
from flows.bench.actions_segments import live_rows, segment_rows
from flows.bench.actions_views import view_rows
from flows.bench.rows import Rows

Ints = npt.NDArray[np.int64]
Figures = dict[str, float | int | str | None]

SEEDS: Final = (0, 1, 2, 3, 4)
PLAIN_SEEDS: Final = (0, 1, 2)
MAX_VIEW_DROP: Final = 0.03
MAX_SPLITS: Final = 10
MIN_CLIPS: Final = 8


@dataclass(frozen=True)
class KnownSet:
    """What is published for a data set, and what is aimed at."""

    name: str
    a_class: str
    """A class that only this set has."""
    aim: float | None
    aim_flat: float | None
    published: dict[str, float]


KNOWN_SETS: Final = (
    KnownSet(
        "UTD-MHAD",
        "arm_cross",
        0.93,
        0.88,
        {"Cov3DJ": 0.856, "JTM": 0.858, "SOS": 0.870, "JDM": 0.881, "Gimme Signals": 0.933},
    ),
    KnownSet(
        "Penn Action", "jumping_jacks", 0.93, 0.93, {"pose only from": 0.79, "pose only to": 0.934}
    ),
    KnownSet("Florence 3D Actions", "tight_lace", None, None, {"Lie group (CVPR 2014)": 0.909}),
    KnownSet("UTKinect-Action3D", "waveHands", None, None, {"Lie group (CVPR 2014)": 0.971}),
)


def run(train: Path, test: Path | None = None) -> BenchReport:
    """Train on one file and judge on another, or leave persons out where there is one.

    Args:
        train: a skeleton file; see ``engines.actions.dataset``.
        test: of the same joints and of classes that the first has too, other persons.

    Raises:
        UsageError: no such file, not such a file, or the two do not fit together.
        EmptyInputError: no clip in it.
    """
    known, rows = read_set(train, JOINTS), Rows()
    if min(len(known.labels), 4 * len(np.unique(known.labels))) < MIN_CLIPS:
        msg = f"{train.name}: {len(known.labels)} clips of {len(np.unique(known.labels))} classes"
        raise UsageError(msg + f"; it takes {MIN_CLIPS} clips and two classes to learn from")
    if test is None or test.resolve() == train.resolve():
        _left_out(known, rows)
    else:
        _report(known, fitting(read_set(test, JOINTS), known, train), rows)
    rows.add(view_rows())
    return BenchReport(rows=tuple(rows.all))


def fitting(asked: SkeletonSet, known: SkeletonSet, train: Path) -> SkeletonSet:
    """The test clips with their labels counted as the training file counts them."""
    if asked.has_depth != known.has_depth:
        msg = f"of {train.name} and the test file only one has depth"
        raise UsageError(msg)
    strange = [name for name in asked.class_names if name not in known.class_names]
    if strange:
        msg = f"{train.name} has no class {strange[0]!r}, which the test file has"
        raise UsageError(msg)
    place = np.array([known.class_names.index(name) for name in asked.class_names], np.int64)
    return replace(asked, labels=place[asked.labels], class_names=known.class_names)


def _report(known: SkeletonSet, asked: SkeletonSet, rows: Rows) -> None:
    """All rows: what is quick first, then a network after the other."""
    rows.say(f"{len(known.clips)} clips to learn from, {len(asked.clips)} to be judged on")
    sizes = (3, 2) if known.has_depth else (2,)
    materials = [make_material(known, asked, dimensions=size) for size in sizes]
    rows.add(_published_rows(known))
    plain = _plain_rows(materials[0], asked.labels)
    rows.add(plain)
    kernels = [kernel_views(material) for material in materials]
    for material, kernel in zip(materials, kernels, strict=True):
        name = "covariances and paths, kernel machine" + _axes(material)
        rows.add([_row(name, {"accuracy": round(accuracy(kernel["plain"], asked.labels), 4)})])
    jobs = [Job(material, seed) for material in materials for seed in SEEDS]
    jobs += [Job(materials[0], seed, attention=False) for seed in PLAIN_SEEDS]
    jobs.append(Job(materials[0], SEEDS[0], live=True))
    outcomes = _told(run_jobs(jobs), len(jobs), asked.labels, rows)
    judged = []
    for material, kernel in zip(materials, kernels, strict=True):
        networks = tuple(outcome.views for outcome in islice(outcomes, len(SEEDS)))
        judged.append(Judged(networks, kernel))
        name = "space-time attention, one network" + _axes(material)
        rows.add([_row(name, _parts(judged[-1], asked.labels))])
        rows.add(_our_rows(known, asked, judged[-1], material, plain))
    rows.add([_noise_row(asked, judged[-1])])
    rows.add([_rules_row(known, asked, materials[0], judged[0])])
    rows.add([_no_attention(list(islice(outcomes, len(PLAIN_SEEDS))), asked.labels)])
    for outcome in outcomes:
        if outcome.network is not None:
            rows.add(segment_rows(outcome.network, asked, seed=0))
            rows.add(live_rows(outcome.network, asked, seed=0))


def _told(outcomes: Iterator[Outcome], count: int, labels: Ints, rows: Rows) -> Iterator[Outcome]:
    """The outcomes, each told as it comes."""
    for number, outcome in enumerate(outcomes, start=1):
        value = accuracy(outcome.views["plain"], labels)
        about = f"accuracy {value:.4f}, {outcome.seconds:.0f} s of one core"
        rows.say(f"network {number} of {count}: {outcome.job.name}: {about}")
        yield outcome


def _axes(material: Material) -> str:
    return ", x and y only" if material.has_depth and material.dimensions == FLAT else ""


def _plain_rows(material: Material, labels: Ints) -> list[BenchRow]:
    """One row for each plain way."""
    ways = plain_ways(material.train, material.labels, material.views["plain"], material.dimensions)
    return [
        _row(name, {"accuracy": round(float((said == labels).mean()), 4)})
        for name, said in ways.items()
    ]


def _no_attention(outcomes: Sequence[Outcome], labels: Ints) -> BenchRow:
    means = [accuracy(o.views["plain"], labels) for o in outcomes]
    figures = {"accuracy": round(float(np.mean(means)), 4), "sd": round(float(np.std(means)), 4)}
    return _row("no attention (mean over time, two layers)", dict(figures))


def _our_rows(
    known: SkeletonSet,
    asked: SkeletonSet,
    judged: Judged,
    material: Material,
    plain: Sequence[BenchRow],
) -> list[BenchRow]:
    """Ours with these axes, and the same seen from 30 degrees aside where there is depth."""
    told = _known_set(known)
    flat = bool(_axes(material))
    aim = None if told is None else told.aim_flat if flat else told.aim
    best_plain = max(float(row.figures["accuracy"] or 0) for row in plain)
    value = accuracy(judged.ours(), asked.labels)
    musts = [] if aim is None else [f">= {aim}"]
    musts += [] if flat else ["better than every plain way"]
    figures: Figures = {"accuracy": round(value, 4), "clips": len(asked.clips)}
    if not flat:
        figures["best_plain"] = best_plain
    holds = value >= (aim or 0.0) and (flat or value > best_plain or value == 1.0)
    name = "ours" + _axes(material)
    rows = [
        BenchRow(
            name=name,
            figures=figures,
            must=" and ".join(musts) or None,
            holds=holds if musts else None,
        )
    ]
    if not known.has_depth:
        return rows
    views = [f"turned {degrees:g}" for degrees in TURNS]
    turned = {view: accuracy(judged.ours(view), asked.labels) for view in views}
    mean = float(np.mean(list(turned.values())))
    networks = float(np.mean([accuracy(judged.ensemble(v), asked.labels) for v in views]))
    figures = {"accuracy": round(mean, 4), "drop": round(value - mean, 4)}
    figures |= {view: round(seen, 4) for view, seen in turned.items()}
    return [
        *rows,
        BenchRow(
            name=f"{name}, seen 30 degrees aside",
            figures=figures | {"networks_alone": round(networks, 4)},
            must=f"drop < {MAX_VIEW_DROP}",
            holds=value - mean < MAX_VIEW_DROP,
        ),
    ]


def _parts(judged: Judged, labels: Ints) -> Figures:
    single = [accuracy(n["plain"], labels) for n in judged.networks]
    return {
        "accuracy": round(float(np.mean(single)), 4),
        "sd": round(float(np.std(single)), 4),
        "seeds": len(single),
        "mean_of_seeds_probabilities": round(accuracy(judged.ensemble(), labels), 4),
    }


def _noise_row(asked: SkeletonSet, judged: Judged) -> BenchRow:
    names = [noise_name(*n) for n in NOISES]
    figures = {n: round(accuracy(judged.ours(n), asked.labels), 4) for n in names}
    return _row("ours, joints disturbed", dict(figures))


def _published_rows(known: SkeletonSet) -> list[BenchRow]:
    told = _known_set(known)
    if told is None:
        return []
    figures: Figures = {"note": f"as published for {told.name}, not run here", **told.published}
    return [_row("published", figures)]


def _rules_row(
    known: SkeletonSet, asked: SkeletonSet, material: Material, judged: Judged
) -> BenchRow:
    """Confusions of the kernel machine with persons left out of training -> rules -> test clips."""
    fold_of = group_folds(known.groups)
    view: View = "front" if known.has_depth else "flat"
    held = np.zeros((len(known.labels), material.classes), np.float32)
    features = describe(material.train, material.dimensions)
    for fold in range(int(fold_of.max()) + 1):
        learn, check = fold_of != fold, fold_of == fold
        machine = fit_kernel_machine(select(features, learn), known.labels[learn], material.classes)
        held[check] = machine.probabilities(select(features, check))
    measured = clip_timings(known.clips, known.joint_names, view=view)
    names = list(known.class_names)
    rules = learn_rules(held, known.labels, measured, fold_of, names)
    matrix = confusion_matrix(known.labels, held.argmax(axis=1), len(names))
    timed = clip_timings(asked.clips, known.joint_names, view=view)
    figures: Figures = {
        "confused_pairs": len(confused_pairs(matrix, names)),
        "rules": "; ".join(f"{r.below}|{r.above}: {r.timing}" for r in rules) or "none kept",
    }
    for name, said in (("kernel", judged.kernel["plain"]), ("ours", judged.ours())):
        before = accuracy(said, asked.labels)
        after = accuracy(correct(said, timed, rules, names), asked.labels)
        figures[f"{name}_before"], figures[f"{name}_after"] = round(before, 4), round(after, 4)
        figures[f"{name}_gain_in_clips"] = round((after - before) * len(asked.labels))
    return _row("timing rules for confused pairs", figures)


def _left_out(known: SkeletonSet, rows: Rows) -> None:
    """One seed for each fold: the mean over folds of ours and of the plain ways."""
    scores: dict[str, list[float]] = {}
    sizes = (3, 2) if known.has_depth else (2,)
    splits = _splits(known)[:MAX_SPLITS]
    folds = [(known.select(learn), known.select(check)) for learn, check in splits]
    rows.say(f"{len(known.clips)} clips, {len(folds)} splits")
    materials = [
        [make_material(*fold, dimensions=size, plain_only=True) for size in sizes] for fold in folds
    ]
    jobs = [
        Job(m, SEEDS[0], attention=a) for fold in materials for m in fold for a in (True, False)
    ]
    outcomes = run_jobs(jobs)
    for number, (fold, (_, asked)) in enumerate(zip(materials, folds, strict=True), start=1):
        for material in fold:
            found = _fold_scores(material, *islice(outcomes, 2), labels=asked.labels)
            told = ", ".join(f"{name} {value:.4f}" for name, value in found.items())
            rows.say(f"split {number} of {len(folds)}{_axes(material)}: {told}")
            for name, value in found.items():
                scores.setdefault(name + _axes(material), []).append(value)
    rows.add([_mean_row(name, values) for name, values in scores.items()])
    rows.add(_published_rows(known))


def _mean_row(name: str, values: Sequence[float]) -> BenchRow:
    mean, spread = float(np.mean(values)), float(np.std(values))
    return _row(name, {"accuracy": round(mean, 4), "sd": round(spread, 4), "splits": len(values)})


def _fold_scores(
    material: Material, attention: Outcome, no_attention: Outcome, *, labels: Ints
) -> dict[str, float]:
    judged = Judged((attention.views,), kernel_views(material))
    ways = plain_ways(material.train, material.labels, material.views["plain"], material.dimensions)
    return {name: float((said == labels).mean()) for name, said in ways.items()} | {
        "no attention (mean over time, two layers)": accuracy(no_attention.views["plain"], labels),
        "covariances and paths, kernel machine": accuracy(judged.kernel["plain"], labels),
        "space-time attention, one network": accuracy(judged.ensemble(), labels),
        "ours": accuracy(judged.ours(), labels),
    }


def _splits(known: SkeletonSet) -> list[tuple[Ints, Ints]]:
    """Rows to learn from and to check, stored or made."""
    if known.splits:
        return [
            (np.flatnonzero(np.isin(known.groups, a)), np.flatnonzero(np.isin(known.groups, b)))
            for a, b in known.splits
        ]
    fold_of = group_folds(known.groups)
    return [
        (np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold))
        for fold in range(int(fold_of.max()) + 1)
    ]


def _known_set(known: SkeletonSet) -> KnownSet | None:
    return next((told for told in KNOWN_SETS if told.a_class in known.class_names), None)


def _row(name: str, figures: Figures) -> BenchRow:
    return BenchRow(name=name, figures=figures, must=None, holds=None)
