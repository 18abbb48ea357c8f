"""The programs of README.md, against a fake OpenAI server."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import pathlib
import re
import urllib.request
from typing import Any

import pytest
from conftest import Server

README = pathlib.Path(__file__).parents[1] / "README.md"

RESERVED = len(b"Say hello.") + 16 + 500
CONTENT = "Hello! This is an answer in several pieces."


def programs(section: str) -> list[tuple[str, str]]:
    """Return the programs of a section, each with the output that the page shows after it."""
    text = README.read_text().split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    fenced = re.findall(r"^```python\n(.*?)^```\n+(?:^```text\n(.*?)^```)?", text, re.M | re.S)
    assert fenced
    return fenced


def named(program: str, entity: str) -> str:
    """Let a program use the limits that do not change by themselves."""
    for old, new in (
        ('"llm"', '"counted"'),
        ('"rpm"', '"calls"'),
        ('"tpm"', '"tokens"'),
        ("tpm=", "tokens="),
        ('"acme"', f'"{entity}"'),
    ):
        program = program.replace(old, new)
    return program


def define(*texts: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for text in texts:
        exec(compile(text, str(README), "exec"), names)
    return names


def asked() -> int:
    """Return how many requests the fake server has had."""
    url = os.environ["OPENAI_BASE_URL"].removesuffix("/v1") + "/__aimock/journal"
    with urllib.request.urlopen(url) as answer:
        return str(answer.read()).count('"method":"POST"')


@pytest.fixture
def fake(server: Server) -> None:
    if "OPENAI_BASE_URL" not in os.environ:
        pytest.skip("OPENAI_BASE_URL names no server")


@pytest.mark.parametrize("section", ["The first decision", "The verbs"])
def test_output(server: Server, entity: str, section: str) -> None:
    """A program without a model prints what the page says."""
    for program, want in programs(section):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            define(program.replace('"acme"', f'"{entity}"'))
        assert out.getvalue() == want


@pytest.mark.usefixtures("fake")
def test_openai(server: Server, entity: str) -> None:
    """A call is charged its usage, and nothing if the provider refuses it."""
    openai = pytest.importorskip("openai")
    ask = define(named(programs("With the OpenAI SDK")[0][0], entity))["ask"]
    assert ask(entity, "Say hello.") == CONTENT
    assert server.used(entity) == server.expect(1, 20)
    before = asked()
    with pytest.raises(openai.RateLimitError):
        ask(entity, "refuse")
    assert server.used(entity) == server.expect(1, 20)
    assert asked() == before + 1


@pytest.mark.usefixtures("fake")
def test_openai_stream(server: Server, entity: str) -> None:
    """A stream is charged its usage, or what has come when it is left or breaks."""
    openai = pytest.importorskip("openai")
    texts = [named(program, entity) for program, _ in programs("With the OpenAI SDK")[:2]]
    stream = define(*texts)["stream"]
    chunks = list(stream(entity, "Say hello."))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == CONTENT
    assert server.used(entity) == server.expect(1, 20)

    left = stream(entity, "Say hello.")
    assert [next(left), next(left)]
    assert server.used(entity)["tokens"] == 20 + RESERVED
    left.close()
    came = len(b"Say hello.") + 16 + 2
    assert server.used(entity) == server.expect(2, 20 + came)

    chunks = []
    with pytest.raises(openai.APIConnectionError):
        chunks.extend(stream(entity, "break"))
    broken = len(b"break") + 16 + len(chunks)
    assert 0 < len(chunks) < 5
    assert server.used(entity) == server.expect(3, 20 + came + broken)

    with pytest.raises(openai.RateLimitError):
        next(stream(entity, "refuse"))
    assert server.used(entity) == server.expect(3, 20 + came + broken)


@pytest.mark.usefixtures("fake")
def test_openai_async(server: Server, entity: str) -> None:
    """The same with asyncio."""
    openai = pytest.importorskip("openai")

    async def main() -> None:
        names = define(named(programs("With the OpenAI SDK")[2][0], entity))
        assert await names["ask"](entity, "Say hello.") == CONTENT
        with pytest.raises(openai.RateLimitError):
            await names["ask"](entity, "refuse")
        await names["weir"].aclose()
        await names["llm"].close()

    asyncio.run(main())
    assert server.used(entity) == server.expect(1, 20)


@pytest.mark.usefixtures("fake")
def test_litellm(server: Server, entity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with LiteLLM."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = pytest.importorskip("litellm")
    names = define(*(named(program, entity) for program, _ in programs("With LiteLLM")))
    ask = names["ask"]
    assert ask(entity, "Say hello.") == CONTENT
    assert server.used(entity) == server.expect(1, 20)
    before = asked()
    with pytest.raises(litellm.RateLimitError):
        ask(entity, "refuse")
    assert asked() == before + 1
    assert server.used(entity) == server.expect(1, 20)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(litellm.InternalServerError):
        ask(entity, "Say hello.")
    assert server.used(entity) == server.expect(2, 20 + RESERVED)
    monkeypatch.undo()
    chunks = list(names["stream"](entity, "Say hello."))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == CONTENT
    assert server.used(entity) == server.expect(3, 40 + RESERVED)
    left = names["stream"](entity, "Say hello.")
    assert [next(left), next(left)]
    left.close()
    assert server.used(entity) == server.expect(4, 40 + RESERVED + len(b"Say hello.") + 16 + 2)
