"""YAML as a pipeline file needs it: plain values, exact lines, and no surprises."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import SpecError
from penstock.spec.yaml_text import MAX_BYTES, MAX_DEPTH, parse


def refused(text: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse(text, file="p.yml")
    assert caught.value.why
    assert caught.value.fix
    return caught.value


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(alphabet="abc é:#'\"\n-", max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=4),
    max_leaves=20,
)


@given(value=PLAIN)
def test_what_was_dumped_is_read_back(value: object) -> None:
    assert parse(yaml.safe_dump(value, allow_unicode=True), file="p.yml").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("1_000", 1000),
        ("0x1F", 31),
        ("1.5", 1.5),
        ("true", True),
        ("off", False),
        ("~", None),
        ("010", "010"),
        ("1:30", "1:30"),
        ("1e3", "1e3"),
        ("2024-01-02", "2024-01-02"),
        ("2024-13-45", "2024-13-45"),
        ("!!int x", "x"),
        ("!!bool x", "x"),
        ("9" * 5000, "9" * 5000),
        ("größe", "größe"),
        ('"12"', "12"),
    ],
)
def test_a_scalar_is_what_a_person_would_take_it_for(text: str, value: object) -> None:
    found = parse(f"key: {text}", file="p.yml").value["key"]
    assert found == value
    assert type(found) is type(value)


def test_a_key_is_the_text_as_written() -> None:
    assert list(parse("on: 1\nyes: 2\n010: 3\nnull: 4\n", file="p.yml").value) == ["on", "yes", "010", "null"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_are_those_of_the_file_whatever_ends_them(newline: str) -> None:
    document = parse(newline.join(["\ufeffa: 1", "", "# note", "b:", "  - c: 2", "  - d"]), file="p.yml")
    assert document.lines[("a",)] == 1
    assert document.lines[("b",)] == 4
    assert document.line(("b", 0, "c")) == 5
    assert document.line(("b", 1)) == 6
    assert document.line(("b", 1, "not", "there")) == 6


def test_an_empty_file_says_how_to_begin() -> None:
    assert "penstock init" in refused("# nothing\n").fix


def test_a_yaml_error_names_its_line() -> None:
    error = refused("a: 1\nb: [1, 2\nc: 3\n")
    assert error.line in (2, 3)
    assert "not valid YAML" in error.what


def test_a_tab_for_indentation_names_its_line() -> None:
    assert refused("a:\n\tb: 1\n").line == 2


def test_a_control_character_is_told() -> None:
    assert "not valid YAML" in refused("a: \x00").what


def test_a_key_that_is_there_twice_names_both_lines() -> None:
    error = refused("a:\n  b: 1\n  c: 2\n  b: 3\n")
    assert error.line == 4
    assert "line 2" in error.why


@pytest.mark.parametrize("text", ["? [a, b]\n: c\n", "x: &x {a: 1}\n<<: *x\n"])
def test_a_key_is_one_plain_word(text: str) -> None:
    assert "can't be a key" in refused(text).what


@pytest.mark.parametrize(
    "text", ["a: !!python/object/apply:os.system ['true']", "a: !mine x", "a: !!binary aGk=", "a: !!set {b}"]
)
def test_a_tag_that_builds_objects_is_refused(text: str) -> None:
    assert "tag" in refused(text).what


def test_two_documents_are_refused() -> None:
    assert refused("a: 1\n---\nb: 2\n").line == 2


def test_a_file_too_large_to_be_meant_is_refused() -> None:
    assert "larger than" in refused("#" * (MAX_BYTES + 1)).what


def test_an_alias_that_holds_itself_is_refused() -> None:
    assert "deep" in refused("a: &a [*a]\n").what


def test_long_texts_multiplied_by_aliases_are_refused() -> None:
    assert "aliases" in refused(f"a: &a {'x' * 5000}\nb: [{', '.join(['*a'] * 500)}]\n").what


BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "a: " + "[" * 300_000,
        "a: " + "{b: " * 200_000,
        "- " * 400_000,
        "a: [" + "x," * 400_000 + "]",
    ],
    ids=["aliases", "brackets", "braces", "dashes", "items"],
)
def test_a_bomb_is_refused_in_little_time_and_memory(text: str) -> None:
    """In a process of its own, with limits that the kernel enforces, since a deep one once crashed libyaml."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (3, 3))
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))

    script = (
        "import sys\n"
        "from penstock.errors import SpecError\n"
        "from penstock.spec.yaml_text import parse\n"
        "try:\n    parse(sys.stdin.read(), file='p.yml')\n"
        "except SpecError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=text, capture_output=True, text=True, preexec_fn=limit, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "more than" in done.stdout


def test_the_depth_limit_leaves_room_for_real_files() -> None:
    text = "a: " + "[" * (MAX_DEPTH - 2) + "]" * (MAX_DEPTH - 2)
    assert parse(text, file="p.yml").value
