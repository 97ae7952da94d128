"""What counts as another tokenizer, and what is only another library's way to write one down."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from runner.capture.tokenizer import tokenizer_class, tokenizer_facts


class Loaded:
    """As a tokenizer of transformers, as far as capture looks."""

    chat_template = None

    def __init__(self, post_processor: Any = None, vocabulary: str = "ab") -> None:
        self.backend_tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(vocabulary)}, merges=[]))
        self.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        if post_processor is not None:
            self.backend_tokenizer.post_processor = post_processor


NOTHING = processors.TemplateProcessing(single="$A", pair="$A:0 $B:1", special_tokens=[])
BEGIN = processors.TemplateProcessing(single="a $A", pair="a $A $B:1", special_tokens=[("a", 0)])


def backend(tokenizer: Loaded) -> Any:
    return tokenizer_facts(tokenizer)["tokenizer.backend"]


def test_a_template_that_adds_nothing_is_none() -> None:
    """transformers 5 puts it where 4 has no post-processor at all."""
    assert backend(Loaded(NOTHING)) == backend(Loaded())


@pytest.mark.parametrize("other", [Loaded(BEGIN), Loaded(processors.ByteLevel()), Loaded(vocabulary="ba")])
def test_another_definition_is_another_tokenizer(other: Loaded) -> None:
    assert backend(other) != backend(Loaded())


def test_the_class_is_told_apart_from_the_definition() -> None:
    """It belongs to the library: transformers 4 and 5 load one folder by two classes."""
    assert tokenizer_class(Loaded()) == {"tokenizer.class": "Loaded"}
    assert "tokenizer.class" not in tokenizer_facts(Loaded())
