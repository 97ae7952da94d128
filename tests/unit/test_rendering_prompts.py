"""A canary's text and ids: templates, clocks, raw prompts, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

from driftpin.errors import SuiteError
from driftpin.suite.canary import Canary, Message
from runner.rendering import EARLY, bos_count, pinned_clock, render

PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
DATED = "{{ strftime_now('%d %b %Y') }}|" + PLAIN
STRICT = "{% if messages[0].role == 'system' %}{{ raise_exception('no system turn') }}{% endif %}" + PLAIN
CHAT = Canary(id="hello", messages=(Message(role="user", content="hi"),))


def tokenizer(template: str | None = PLAIN) -> PreTrainedTokenizerFast:
    vocab = {char: index for index, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    raw = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    made = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<|im_start|>", eos_token="<|im_end|>")
    made.chat_template = template
    return made


def text_of(made: PreTrainedTokenizerFast, ids: tuple[int, ...]) -> str:
    return made.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)


def test_messages_go_through_the_template_and_get_no_further_special_tokens() -> None:
    made = tokenizer()
    rendered = render(made, CHAT, None)
    assert rendered.text == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert text_of(made, rendered.ids) == rendered.text
    assert rendered.ids[0] == made.bos_token_id
    assert rendered.ids.count(made.bos_token_id) == 2


def test_a_tokenizer_that_adds_bos_does_not_add_it_to_a_rendered_prompt() -> None:
    from tokenizers.processors import TemplateProcessing

    made = tokenizer()
    special = [("<|im_start|>", made.bos_token_id)]
    made.backend_tokenizer.post_processor = TemplateProcessing(single="<|im_start|> $A", special_tokens=special)
    assert bos_count(made, made("<|im_start|>x")["input_ids"]) == 2  # what would happen without care
    assert bos_count(made, render(made, CHAT, None).ids) == 1


@pytest.mark.parametrize("prompt", ["Once upon", " \0 odd \x7f\u200b é🙂", "<|im_start|>raw", "{{ not_a_template }}"])
def test_raw_prompts_pass_as_they_are(prompt: str) -> None:
    made = tokenizer(template=None)
    rendered = render(made, Canary(id="raw", prompt=prompt), None)
    assert rendered.text == prompt
    assert text_of(made, rendered.ids) == prompt


def test_nul_in_messages_survives() -> None:
    rendered = render(tokenizer(), Canary(id="nul", messages=(Message(role="user", content="a\0b"),)), None)
    assert "a\0b" in (rendered.text or "")


def test_a_template_that_asks_for_the_time_needs_a_clock() -> None:
    with pytest.raises(SuiteError, match="hello") as caught:
        render(tokenizer(DATED), CHAT, None)
    assert "clock:" in (caught.value.remedy or "")


@pytest.mark.parametrize("directive", ["%Y", "%y", "%m", "%d", "%H", "%I", "%M", "%S", "%f", "%a", "%b", "%p", "%j"])
def test_every_field_of_the_time_is_noticed(directive: str) -> None:
    with pytest.raises(SuiteError):
        render(tokenizer(f"{{{{ strftime_now('{directive}') }}}}" + PLAIN), CHAT, None)


def test_with_a_clock_the_text_is_fixed_and_the_real_clock_comes_back() -> None:
    made = tokenizer(DATED)
    first, second = (render(made, CHAT, "2026-01-02T12:00:00") for _ in range(2))
    assert first == second
    assert (first.text or "").startswith("02 Jan 2026|")
    assert chat_template_utils.datetime is datetime


def test_a_clock_changes_nothing_where_the_template_does_not_ask() -> None:
    assert render(tokenizer(), CHAT, "2026-01-02T12:00:00Z") == render(tokenizer(), CHAT, None)


def test_the_clock_knows_zones() -> None:
    with pinned_clock(EARLY.replace(tzinfo=UTC)):
        assert chat_template_utils.datetime.now(UTC) == EARLY.replace(tzinfo=UTC)


def test_the_clock_comes_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), pinned_clock(EARLY):
        _ = 1 / 0
    assert chat_template_utils.datetime is datetime


@pytest.mark.parametrize(
    ("template", "canary", "clock", "says"),
    [
        (None, CHAT, None, "prompt"),
        (DATED, CHAT, "tomorrow", "clock"),
        (STRICT, Canary(id="sys", messages=(Message(role="system", content="x"),)), None, "no system turn"),
        ("{{ messages[7].role }}", CHAT, None, "refuses"),
        ("{% if %}", CHAT, None, "refuses"),
        (PLAIN, Canary(id="empty", prompt=""), None, "no tokens"),
        ("{{ '' }}", CHAT, None, "no tokens"),
        (PLAIN, Canary(id="half", prompt="a\ud800"), None, "Unicode"),
    ],
)
def test_what_cannot_be_rendered_is_refused_with_advice(
    template: str | None, canary: Canary, clock: str | None, says: str
) -> None:
    with pytest.raises(SuiteError, match=says) as caught:
        render(tokenizer(template), canary, clock)
    assert caught.value.remedy


@pytest.mark.parametrize(("ids", "count"), [((), 0), ((256,), 1), ((256, 256, 3), 2), ((3, 256), 0)])
def test_bos_is_counted_at_the_start(ids: tuple[int, ...], count: int) -> None:
    made: Any = tokenizer()
    assert made.bos_token_id == 256
    assert bos_count(made, ids) == count


def test_without_a_bos_token_none_is_counted() -> None:
    made: Any = tokenizer()
    made.bos_token = None
    assert bos_count(made, (256, 256)) == 0
