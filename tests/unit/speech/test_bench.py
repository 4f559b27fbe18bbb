import pytest

from flows.bench.speech import spoken_words, word_errors


@pytest.mark.parametrize(
    ("wanted", "got", "errors"),
    [
        ("one two three", "One, two, three.", 0),
        ("one two three", "one three", 1),
        ("one two", "one and two", 1),
        ("one two", "won two", 1),
        ("mister", "Mr.", 1),
        ("in eighteen thirteen", "In 1813.", 2),
        ("ill disposed", "ill-disposed", 0),
        ("", "you", 1),
    ],
)
def test_word_errors_count_edits(wanted, got, errors):
    assert word_errors(spoken_words(wanted), spoken_words(got)) == errors
