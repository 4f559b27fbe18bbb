"""The cache key misses when any one ingredient changes, and fails closed."""

import pytest

from engines.errors import CacheKeyError
from tasks.recipe import Recipe, cache_key, code_version

SHA = "a" * 64
RECIPE = Recipe(
    stage="embed",
    code_version="c0de",
    engine="openvino",
    model="lite0",
    model_revision="r1",
    params={"threshold": 0.2, "nested": {"a": 1}},
    prompts={"why@1": "p1"},
)
BASE = cache_key({"sample": SHA, "samples.zip": "b" * 64}, RECIPE)


def test_the_same_content_and_recipe_give_the_same_key():
    assert cache_key({"samples.zip": "b" * 64, "sample": SHA}, RECIPE.model_copy()) == BASE


@pytest.mark.parametrize(
    "change",
    [
        {"stage": "listen"},
        {"code_version": "c0df"},
        {"engine": "onnxruntime"},
        {"model": "lite1"},
        {"model_revision": "r2"},
        {"params": {"threshold": 0.3, "nested": {"a": 1}}},
        {"params": {"threshold": 0.2, "nested": {"a": 2}}},
        {"params": {"threshold": 0.2}},
        {"prompts": {"why@1": "p2"}},
        {"prompts": {"why@2": "p1"}},
        {"prompts": {}},
    ],
    ids=str,
)
def test_each_ingredient_of_the_recipe_alone_is_a_miss(change):
    inputs = {"sample": SHA, "samples.zip": "b" * 64}
    assert cache_key(inputs, RECIPE.model_copy(update=change)) != BASE


@pytest.mark.parametrize(
    "inputs",
    [
        {"sample": "c" * 64, "samples.zip": "b" * 64},
        {"sample": SHA, "samples.zip": "c" * 64},
        {"sample": "b" * 64, "samples.zip": SHA},
        {"sample": SHA},
        {"probe": SHA, "samples.zip": "b" * 64},
    ],
    ids=["content", "blob", "swapped", "one less", "other name"],
)
def test_each_input_alone_is_a_miss(inputs):
    assert cache_key(inputs, RECIPE) != BASE


def test_every_field_of_the_recipe_is_an_ingredient():
    changed = {"stage", "code_version", "engine", "model", "model_revision", "params", "prompts"}
    assert set(Recipe.model_fields) == changed, "a new field needs its case above"


@pytest.mark.parametrize(
    ("inputs", "change"),
    [
        ({}, {}),
        ({"sample": ""}, {}),
        ({"sample": "/tmp/a-path"}, {}),
        ({"sample": SHA.upper()}, {}),
        ({"sample": SHA}, {"model_revision": ""}),
        ({"sample": SHA}, {"code_version": ""}),
        ({"sample": SHA}, {"prompts": {"why@1": ""}}),
        ({"sample": SHA}, {"params": {"threshold": float("nan")}}),
        ({"sample": SHA}, {"params": {"limit": float("inf")}}),
    ],
    ids=str,
)
def test_what_cannot_be_hashed_is_an_error(inputs, change):
    with pytest.raises(CacheKeyError):
        cache_key(inputs, RECIPE.model_copy(update=change))


def test_code_version_follows_statements_and_not_comments(tmp_path, monkeypatch):
    package = tmp_path / "hashed_package"
    package.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))

    def version_of(body):
        (package / "__init__.py").write_text(body)
        code_version.cache_clear()
        return code_version(("hashed_package",))

    plain = version_of('"""Doc."""\nX = 1\n')
    assert version_of('"""Other words."""\n# why\nX   =  1\n') == plain
    assert version_of('"""Doc."""\nX = 2\n') != plain


def test_code_that_is_not_there_is_an_error():
    with pytest.raises(CacheKeyError, match="no code called"):
        code_version(("engines_that_do_not_exist",))
