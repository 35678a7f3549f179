"""`${env:…}`, `${file:…}`, `.env`, and literal secrets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SpecError
from penstock.secrets import Referenced
from penstock.spec.load import load
from penstock.spec.references import environment, resolve
from penstock.spec.yaml_text import parse


def resolved(text: str, folder: Path, **variables: str) -> Any:
    return resolve(parse(text, file="p.yml"), file=folder / "p.yml", variables=variables)


def refused(text: str, folder: Path, **variables: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        resolved(text, folder, **variables)
    assert caught.value.why
    assert caught.value.fix
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:A}", "one"),
        ("x${env:A}y${env:B}", "xoneytwo"),
        ("$${env:A}", "${env:A}"),
        ("$${a} ${env:A}", "${a} one"),
        ("costs $5", "costs $5"),
        ("a$$b", "a$$b"),
        ("${env:EMPTY}", ""),
        ("${env:NESTED}", "${env:A}"),
    ],
)
def test_a_reference_is_replaced_where_it_stands(tmp_path: Path, text: str, value: str) -> None:
    given = {"A": "one", "B": "two", "EMPTY": "", "NESTED": "${env:A}"}
    assert resolved(f"key: '{text}'", tmp_path, **given) == {"key": value}


def test_a_referenced_text_remembers_its_reference(tmp_path: Path) -> None:
    found = resolved("- '${env:A}:9092'", tmp_path, A="h")[0]
    assert isinstance(found, Referenced)
    assert (found, found.reference) == ("h:9092", "${env:A}:9092")


def test_a_variable_that_is_not_set_is_named_with_its_line(tmp_path: Path) -> None:
    error = refused("a: 1\nb:\n  - x\n  - ${env:NOPE}\n", tmp_path)
    assert error.line == 4
    assert "NOPE is not set" in error.what
    assert ".env" in error.fix


@pytest.mark.parametrize("text", ["${}", "${A}", "${env:}", "${secret:A}", "${file:}"])
def test_what_is_no_reference_is_told(tmp_path: Path, text: str) -> None:
    assert "is not a reference" in refused(f"a: '{text}'", tmp_path).what


def test_a_reference_that_is_left_open_is_told(tmp_path: Path) -> None:
    assert "not closed" in refused("a: 'x${env:A'", tmp_path, A="1").what


def test_a_reference_in_a_key_is_refused(tmp_path: Path) -> None:
    assert "key" in refused("a:\n  '${env:A}': 1\n", tmp_path, A="b").what


@pytest.mark.parametrize("content", [b"hush", b"hush\n", b"hush\r\n", b"\xef\xbb\xbfhush\n"])
def test_a_file_is_read_without_its_last_newline(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "secret").write_bytes(content)
    assert resolved("a: ${file:secret}", tmp_path) == {"a": "hush"}
    assert resolved(f"a: ${{file:{tmp_path}/secret}}", tmp_path) == {"a": "hush"}


def test_a_home_folder_is_meant_by_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "secret").write_text("hush")
    assert resolved("a: ${file:~/secret}", tmp_path / "elsewhere") == {"a": "hush"}


@pytest.mark.parametrize("name", ["nothing", ".", "bytes"])
def test_a_file_that_can_t_be_read_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert "can't be read" in refused(f"a: ${{file:{name}}}", tmp_path).what


def test_a_dotenv_is_read_and_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_bytes(
        b"\xef\xbb\xbf# note\r\n\r\nPENSTOCK_A=one\r\n"
        b"export PENSTOCK_B = 'two # 2'\r\nPENSTOCK_C=\"x=y\"\r\nPENSTOCK_D=\r\n"
    )
    monkeypatch.setenv("PENSTOCK_A", "mine")
    found = environment(tmp_path)
    assert [found[f"PENSTOCK_{name}"] for name in "ABCD"] == ["mine", "two # 2", "x=y", ""]


def test_a_dotenv_line_that_can_t_be_read_is_named_without_its_content(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nhunter2\n")
    with pytest.raises(SpecError) as caught:
        environment(tmp_path)
    assert caught.value.line == 2
    assert "hunter2" not in str(caught.value)


def test_a_dotenv_that_is_not_text_is_told(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff\n")
    with pytest.raises(SpecError, match="UTF-8"):
        environment(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "password: hunter2",
        "password: [hunter2]",
        "token: 'hunter2'",
        "options: {kafka.sasl.jaas.config: hunter2}",
        "options: {ssl.keystore.key: hunter2}",
        "spark.hadoop.fs.s3a.secret.key: hunter2",
        "spark.hadoop.fs.azure.account.key.x.dfs.core.windows.net: hunter2",
        "uri: jdbc:postgresql://h/db?user=me&password=hunter2",
        "uri: https://me:hunter2@h/",
        "uri: https://me:hunter2@${env:HOST}/",
        'note: KafkaLoginModule required username="u" password="hunter2";',
    ],
)
def test_a_literal_secret_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    error = refused(f"a: 1\n{text}\n", tmp_path, HOST="h")
    assert error.line == 2
    assert "hunter2" not in str(error)
    assert "${env:NAME}" in error.fix


@pytest.mark.parametrize(
    "text",
    [
        "password: ${env:P}",
        'jaas: \'ScramLoginModule required username="u" password="${env:P}";\'',
        "uri: https://me:${env:P}@h/",
        "password_file: /run/secrets/p",
        "sql: select * from input where password = 'x' or password='y'",
        "ssl.truststore.location: /etc/ca.pem",
        "password: ''",
        "bypass: x",
        "topic: secrets",
    ],
)
def test_what_is_no_literal_secret_is_taken(tmp_path: Path, text: str) -> None:
    assert resolved(text, tmp_path, P="hunter2")


@pytest.mark.parametrize(
    ("old", "new", "add"),
    [
        ("name: orders", "name: '${env:S}'", ""),
        ("", "", "mode: '${env:S}'\n"),
        ("", "", "require: '${env:S}'\n"),
        ("", "", "trigger: {every: '${env:S}'}\n"),
        ("", "", "steps: [watermark: {column: t, delay: '${env:S}'}]\n"),
        ("", "", "steps: [python: '${env:S}']\n"),
        ("topic: orders", "topic: orders, protocol: '${env:S}'", ""),
        ("topic: orders", "topic: orders, max_records_per_batch: '${env:S}'", ""),
        ("topic: orders", "topic: orders, password: ['${env:S}']", ""),
        ("topic: orders", "topic: orders, start: '${env:S}'", ""),
    ],
)
def test_a_referenced_value_is_never_shown_in_an_error(
    write: Callable[..., Path], old: str, new: str, add: str
) -> None:
    with pytest.raises(SpecError) as caught:
        load(write(old, new, add=add), variables={"S": "hunter 2!"})
    assert "hunter" not in str(caught.value)
