"""Inspection runs in a child that is killed and reported; nothing but the file is opened."""

import shutil
import subprocess
import sys
from pathlib import Path

import hostile
import pytest
from made_media import noise_free_scene, write_video

from engines.errors import RefusedError, StageCrashedError, StageTimeoutError
from engines.media.inspect import inspect, inspect_here, refusal
from engines.runtime.child import ChildPool

_WATCH = """
import sys
from pathlib import Path
from engines.errors import RefusedError
from engines.media.inspect import inspect_here
import engines.media.probe, engines.media.sample, engines.media.shots, scipy.signal
seen = []
def watch(event, args):
    if event == "open" or event.startswith("socket."):
        seen.append((event, str(args[0])))
    if event.startswith(("subprocess.", "os.system", "os.exec", "os.posix_spawn")):
        seen.append((event, ""))
sys.addaudithook(watch)
for name in sys.argv[1:]:
    try:
        inspect_here(Path(name), 5.0, second_look=False)
    except RefusedError:
        pass
for event, what in seen:
    print(event, what)
"""


def _files(folder: Path) -> list[Path]:
    secret = folder / "secret.ts"
    secret.write_bytes(hostile.small_mp4(folder, "secret.mp4").read_bytes())
    made = [make(folder) for make in hostile.REFUSED.values()]
    return [*made, hostile.external_reference(folder), hostile.small_mp4(folder)]


def test_no_other_file_and_no_socket(tmp_path: Path) -> None:
    """Python's own audit events: every open and every socket of the whole inspection."""
    files = _files(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _WATCH, *map(str, files)], capture_output=True, text=True, check=True
    )
    opened = {line.split(" ", 1)[1] for line in done.stdout.splitlines() if line[:5] == "open "}
    assert {str(f) for f in files} <= opened
    strangers = {o for o in opened if str(tmp_path) in o} - {str(f) for f in files}
    assert not strangers
    assert not [line for line in done.stdout.splitlines() if not line.startswith("open ")]
    assert not any("passwd" in o for o in opened)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_native_code_opens_nothing_either(tmp_path: Path) -> None:
    """The decoder's system calls, which Python cannot see."""
    files = _files(tmp_path)
    log = tmp_path / "calls.log"
    command = ["strace", "-f", "-o", str(log), "-e", "trace=open,openat,socket,connect,execve"]
    subprocess.run(
        [*command, sys.executable, "-c", _WATCH, *map(str, files)], capture_output=True, check=True
    )
    calls = log.read_text(errors="replace").splitlines()
    assert not [c for c in calls if "socket(" in c or "connect(" in c]
    touched = {c for c in calls if str(tmp_path) in c and "openat" in c and "execve" not in c}
    names = {str(f) for f in files}
    assert touched
    assert not [c for c in touched if not any(f'"{n}"' in c for n in names)]


def test_what_inspect_says_of_a_good_file(tmp_path: Path) -> None:
    found = inspect(hostile.small_mp4(tmp_path))
    assert found.media is not None
    assert found.video is not None
    assert (found.verdict, found.video.frames_decoded) == ("complete", 50)
    assert found.video.time_base == f"{found.video.time_base_num}/{found.video.time_base_den}"
    assert [s.start_frame for s in found.shots] == [0]


def test_a_refusal_crosses_the_process_border(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="empty") as caught:
        inspect(hostile.zero_bytes(tmp_path))
    said = refusal(caught.value)
    assert (said.verdict, said.media, said.problems[0].code) == ("refused", None, "empty_input")


def test_time_and_memory_limits_hold(tmp_path: Path) -> None:
    path = hostile.small_mp4(tmp_path)
    with ChildPool() as pool:
        with pytest.raises(StageTimeoutError):
            pool.run(0.05, inspect_here, path)
        assert pool.run(60, inspect_here, path).verdict == "complete"
    with (
        ChildPool(memory_bytes=150 * 2**20) as pool,
        pytest.raises((StageCrashedError, MemoryError, RefusedError, ImportError, OSError)),
    ):
        pool.run(60, inspect_here, path)


def test_a_budget_ends_a_file_that_never_ends(tmp_path: Path) -> None:
    path = write_video(tmp_path / "long.mp4", noise_free_scene(1, 50, (640, 360)) * 8, 25)
    found = inspect_here(path, 0.05, second_look=False)
    assert found.verdict == "partial"
    assert any(p.code == "stopped" for p in found.problems)
