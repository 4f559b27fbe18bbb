"""Times rise, come from the container where it states them, and are marked where it does not."""

from fractions import Fraction

from engines.media.clock import Epochs, StreamClock


def _clock(base: Fraction = Fraction(1, 1000), nominal: int = 40, **kw: bool) -> StreamClock:
    return StreamClock(base, nominal, Epochs(), **kw)


def test_stated_times_stand() -> None:
    clock = _clock()
    assert [clock.place(t, 40) for t in (10_000, 10_040, 10_180)] == [10_000, 10_040, 10_180]
    assert clock.end == 10_220
    assert (clock.estimated, clock.repaired, clock.epoch) == (0, 0, 0)


def test_missing_times_follow_the_one_before() -> None:
    clock = _clock()
    assert [clock.place(t, 0) for t in (100, None, None, 260)] == [100, 140, 180, 260]
    assert clock.estimated == 2


def test_avi_takes_the_steps_of_the_decoding_times() -> None:
    """What the library calls presentation times there is off by the reordering delay."""
    clock = _clock(Fraction(1, 25), 1, ignore_pts=True)
    frames = [(None, 1), (2, 2), (None, 3), (None, 5), (None, None)]
    assert [clock.place(pts, 1, dts) for pts, dts in frames] == [0, 1, 2, 4, 6]


def test_a_missing_time_is_a_step_behind_the_frame_before() -> None:
    """Program streams state every second or third time; decoding times fill the rest."""
    clock = _clock(Fraction(1, 90_000), nominal=1)
    stated = [48_600, 52_200, 55_800, None, 63_000, None, None, 73_800]
    placed = [clock.place(pts, 0, 48_600 + 3600 * i) for i, pts in enumerate(stated)]
    assert placed == [48_600 + 3600 * i for i in range(8)]
    assert clock.estimated == 3
    assert clock.repaired == 0


def test_equal_times_are_pulled_apart() -> None:
    clock = _clock()
    assert [clock.place(0, 0) for _ in range(4)] == [0, 1, 2, 3]
    assert clock.repaired == 3


def test_an_appended_recording_goes_on_where_the_first_ended() -> None:
    epochs = Epochs()
    picture = StreamClock(Fraction(1, 90_000), 3_600, epochs)
    sound = StreamClock(Fraction(1, 48_000), 1_024, epochs)
    for start in (126_000, 126_000 - 45_000, 126_000):
        first = [picture.place(start + 3_600 * i, 3_600) for i in range(50)]
        heard = [sound.place((start * 48 // 90) + 1_024 * i, 1_024) for i in range(94)]
        # The two streams stay together within a frame.
        assert abs(picture.seconds(first[0]) - sound.seconds(heard[0])) < 0.05
    assert picture.epoch == sound.epoch == 2
    assert 1.4 + 3 * 2 <= picture.seconds(picture.end) < 1.4 + 3 * 2.1


def test_small_steps_back_are_no_new_recording() -> None:
    clock = _clock()
    times = [clock.place(t, 40) for t in (0, 40, 35, 80)]
    assert times == [0, 40, 41, 80]
    assert clock.epoch == 0


def test_state_is_complete() -> None:
    clock = _clock()
    for t in (0, 40, None, 100):
        clock.place(t, 40, 7)
    copy = _clock()
    copy.restore(clock.state())
    assert copy.place(None, 40) == clock.place(None, 40)
    assert copy.state() == clock.state()
