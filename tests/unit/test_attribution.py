"""Because of what: the model is ruled out or named first, then suspects stand likeliest first.

The pairs are shaped after real ones: captured from one model folder under two settings, variables or versions.
"""

from __future__ import annotations

import pytest

from driftpin.environment import Environment, Unknown, difference, equalities
from driftpin.environment.attribution import Attribution, attribute

H, H2 = "a" * 64, "b" * 64
MODEL = {
    "weights.model.safetensors": H,
    "parameters.model.layers.0": H,
    "parameters.total": H,
    "parameters.dtypes": {"bfloat16": 10},
    "config.file": H,
    "tokenizer.backend": H,
    "tokenizer.class": "PreTrainedTokenizerFast",
    "template": H,
    "generation.file": H,
    "sampling.mode": "clean",
}
STACK = {
    "dtype": "bfloat16",
    "attention.implementation": "sdpa",
    "attention.decode": "math",
    "device.class": "cpu:GenuineIntel-6-207",
    "isa.mkl": "AVX512",
    "flag.threads": 1,
    "library.torch": "2.13.0",
    "library.transformers": "5.24.0",
    "library.tokenizers": "0.23.3",
    "variable.MKL_CBWR": None,
}
BEHAVIOUR = {"linear.m1": f"v1:{H}", "linear.m64": f"v1:{H}", "attention.m1": f"v1:{H}"}
MATTERS = ["weights", "parameters", "configuration", "tokenizer", "template", "generation"]


def environment(model=None, stack=None, behaviour=None) -> Environment:
    """The ordinary one with changes; a change to `...` removes the fact."""
    parts = ((MODEL, model), (STACK, stack), (BEHAVIOUR, behaviour))
    merged = ({n: v for n, v in {**base, **(more or {})}.items() if v is not ...} for base, more in parts)
    return Environment(**dict(zip(("model", "stack", "behaviour"), merged, strict=True)))


def found(old: Environment, new: Environment) -> Attribution:
    return attribute(difference(old, new), equalities(old, new), old, new)


def words(made: Attribution) -> dict[str, str]:
    return {one.matter.value: one.word.value for one in made.ruled}


def test_equal_environments_name_no_cause_and_rule_the_whole_model_out() -> None:
    made = found(environment(), environment())
    assert made.likeliest == "Nothing that was recorded differs, so no cause can be named."
    assert words(made) == dict.fromkeys(MATTERS, "same")
    assert (made.suspects, made.undetermined) == ((), ())


def test_the_model_is_asked_in_its_order_before_any_stack_fact() -> None:
    made = found(environment(), environment(stack={"device.class": "cpu:AuthenticAMD-25-17"}))
    assert list(words(made)) == MATTERS
    assert set(words(made).values()) == {"same"}
    assert made.likeliest == (
        "Likeliest cause: the device's class went from cpu:GenuineIntel-6-207 to cpu:AuthenticAMD-25-17."
    )


@pytest.mark.parametrize(
    ("change", "matter"),
    [
        ({"weights.model.safetensors": H2}, "weights"),
        ({"config.file": H2}, "configuration"),
        ({"tokenizer.backend": H2}, "tokenizer"),
        ({"template": H2}, "template"),
        ({"sampling.mode": "as_shipped"}, "generation"),
    ],
)
def test_a_changed_part_of_the_model_is_named_before_another_device(change: dict[str, object], matter: str) -> None:
    made = found(environment(), environment(change, {"device.class": "another", "library.torch": "2.14.0"}))
    assert words(made) == {**dict.fromkeys(MATTERS, "same"), matter: "changed"}
    assert made.suspects[0].name == next(iter(change))


def test_weights_that_lie_wrong_on_the_device_suspect_memory() -> None:
    made = found(environment(), environment({"parameters.model.layers.0": H2, "parameters.total": H2}))
    assert words(made)["weights"] == "same"
    assert words(made)["parameters"] == "changed"
    assert "parameters and buffers of model.layers.0 changed although the weight files are the same" in made.likeliest
    assert "suspect the device's memory" in made.likeliest


def test_a_library_upgrade_stands_before_what_follows_from_it() -> None:
    """As seen between transformers 4.57.6 and 5.24.0 on one folder."""
    old = environment(stack={"library.transformers": "4.57.6", "library.tokenizers": "0.22.2"})
    new = environment({"parameters.total": H2, "parameters.model.rotary_emb": H2, "tokenizer.backend": H2})
    made = found(old, new)
    assert [fact.name for fact in made.suspects][:2] == ["library.transformers", "library.tokenizers"]
    assert made.likeliest.startswith("Likeliest cause: transformers was upgraded from 4.57.6 to 5.24.0, and with it")
    assert "the tokenizer and what lies on the device" in made.likeliest
    assert words(made)["parameters"] == words(made)["tokenizer"] == "changed"  # said all the same
    assert "transformers was downgraded from 5.24.0 to 4.57.6" in found(new, old).likeliest


def test_an_upgrade_excuses_nothing_where_the_weight_files_changed() -> None:
    old = environment(stack={"library.transformers": "4.57.6"})
    made = found(old, environment({"weights.model.safetensors": H2, "parameters.total": H2}))
    assert [fact.name for fact in made.suspects] == [
        "weights.model.safetensors",
        "parameters.total",
        "library.transformers",
    ]


def test_parameters_in_another_format_cannot_be_compared() -> None:
    new = environment({"parameters.total": H2, "parameters.dtypes": {"float32": 10}}, {"dtype": "float32"})
    made = found(environment(), new)
    assert words(made)["parameters"] == "undetermined"
    assert made.suspects[0].name == "dtype"
    assert "the number format went from bfloat16 to float32" in made.likeliest
    assert made.microprobes.word == "unknown"


def test_a_variable_stands_before_the_instruction_set_that_follows_from_it() -> None:
    made = found(environment(), environment(stack={"isa.mkl": "SSE", "variable.MKL_CBWR": "COMPATIBLE"}))
    assert [fact.name for fact in made.suspects] == ["variable.MKL_CBWR", "isa.mkl"]
    assert made.likeliest == (
        "Likeliest cause: the variable MKL_CBWR was not set before and is now 'COMPATIBLE', and with it the "
        "instruction set in use (1 further fact differs)."
    )


def test_an_instruction_set_that_came_with_a_version_stands_behind_it() -> None:
    """As seen between torch 2.6 and 2.13 on one machine: a younger oneDNN names its instruction set otherwise."""
    new = environment(stack={"isa.mkl": "AVX10", "library.torch": "2.14.0"})
    made = found(environment(), new)
    assert [fact.name for fact in made.suspects] == ["library.torch", "isa.mkl"]
    assert "torch was upgraded from 2.13.0 to 2.14.0, and with it the instruction set in use" in made.likeliest
    moved = found(environment(), environment(stack={"isa.mkl": "AVX2", "device.class": "another"}))
    assert [fact.name for fact in moved.suspects] == ["device.class", "isa.mkl"]
    alone = found(environment(), environment(stack={"isa.mkl": "AVX2"}))
    assert alone.likeliest.startswith("Likeliest cause: the instruction set of mkl went from AVX512 to AVX2")


def test_what_a_version_of_torch_brings_stands_behind_every_other_suspect() -> None:
    brought = {"library.torch.git": "b", "library.nvidia-cublas-cu12": "12.8", "library.triton": "3.5"}
    new = environment(stack={**brought, "library.torch": "2.14.0", "library.transformers": "5.25.0"})
    old = environment(stack={**brought, "library.torch.git": "a", "library.nvidia-cublas-cu12": "12.4"})
    assert [fact.name for fact in found(old, new).suspects] == [
        *("library.torch", "library.transformers", "library.torch.git", "library.nvidia-cublas-cu12")
    ]
    alone = environment(stack={**brought, "library.torch.git": "a"})
    assert found(old, alone).suspects[0].name == "library.nvidia-cublas-cu12"


@pytest.mark.parametrize(
    ("behaviour", "first"),
    [
        ({"linear.m64": f"v1:{H2}"}, "library.torch"),  # an operator of torch gives other bits: no library above it did
        ({}, "library.transformers"),  # no difference seen, and the tokenizer's own change follows from it
    ],
)
def test_microprobes_tell_a_library_above_torch_from_what_lies_beneath(behaviour: dict[str, str], first: str) -> None:
    old = environment(stack={"library.transformers": "4.48.3", "library.torch": "2.6.0"})
    new = environment({"tokenizer.backend": H2}, behaviour=behaviour)
    made = found(old, new)
    libraries = [fact.name for fact in made.suspects if fact.name.startswith("library")]
    assert libraries == [first, *({"library.torch", "library.transformers"} - {first})]
    assert words(made)["tokenizer"] == "changed"


def test_a_library_above_torch_stands_behind_anything_beneath_that_could_give_other_bits() -> None:
    upgraded, other = {"library.transformers": "4.48.3"}, {"linear.m64": f"v1:{H2}"}
    old = environment(stack={**upgraded, "object.libgomp.so.1": H, "library.jinja2": "3.0"})
    both = found(old, environment(stack={"object.libgomp.so.1": H2, "library.jinja2": "3.0"}, behaviour=other))
    assert [fact.name for fact in both.suspects] == ["object.libgomp.so.1", "library.transformers"]
    none = found(old, environment(stack={"object.libgomp.so.1": H, "library.jinja2": "3.1"}, behaviour=other))
    assert [fact.name for fact in none.suspects] == ["library.transformers", "library.jinja2"]  # no better suspect


def test_a_switch_that_came_with_a_version_stands_behind_the_version() -> None:
    new = environment(stack={"library.torch": "2.14.0", "flag.new_switch": True, "experts.implementation": "eager"})
    made = found(environment(stack={"experts.implementation": None}), new)
    assert [fact.name for fact in made.suspects] == ["library.torch", "experts.implementation", "flag.new_switch"]


def test_a_penalty_in_force_is_named_with_its_value() -> None:
    more = {"generation.file": H2, "sampling.file.repetition_penalty": "1.3"}
    shipped = {"sampling.mode": "as_shipped"}
    new = environment({**shipped, **more, "sampling.in_force.repetition_penalty": "1.3"})
    made = found(environment(shipped), new)
    assert made.likeliest.startswith("Likeliest cause: repetition_penalty = 1.3 acts on the output now")


def test_a_generation_file_that_no_call_uses_is_the_last_suspect() -> None:
    """Under clean sampling the settings are ours, so a thread count explains more than a file that is not read."""
    new = environment({"generation.file": H2, "sampling.file.repetition_penalty": "1.3"}, {"flag.threads": 2})
    made = found(environment(), new)
    assert made.suspects[0].name == "flag.threads"
    ruled = next(one for one in made.ruled if one.matter == "generation")
    assert ruled.word == "changed"
    assert "nothing of it is in force" in ruled.sentence


def test_an_undetermined_part_is_never_ruled_out_and_says_why() -> None:
    old, new = environment(), environment({"weights.model.safetensors": Unknown("the file cannot be read")})
    made = found(old, new)
    assert words(made)["weights"] == "undetermined"
    assert "the file cannot be read" in made.ruled[0].sentence
    assert made.suspects == ()
    assert made.likeliest == (
        "No known fact of model and stack differs; weights.model.safetensors cannot be compared "
        "(unknown now, the file cannot be read)."
    )


def test_a_matter_that_nobody_recorded_is_undetermined_not_the_same() -> None:
    bare = environment({name: ... for name in MODEL if name.startswith("tokenizer")})
    assert words(found(bare, bare))["tokenizer"] == "undetermined"


def test_microprobes_alone_suspect_the_device() -> None:
    made = found(environment(), environment(behaviour={"linear.m1": f"v1:{H2}", "attention.m1": f"v1:{H2}"}))
    assert made.microprobes.sentence == "microprobes: compute something else: attention m1, linear m1"
    assert made.microprobes.operators == ("attention.m1", "linear.m1")
    assert made.likeliest.endswith("suspect the device.")


def test_microprobes_on_an_undetermined_stack_accuse_no_device() -> None:
    stack = {"isa.mkl": Unknown("no verbose run")}
    made = found(environment(stack=stack), environment(stack=stack, behaviour={"linear.m1": f"v1:{H2}"}))
    assert "suspect the device" not in made.likeliest
    assert "isa.mkl cannot be compared (unknown on both sides, no verbose run)" in made.likeliest


@pytest.mark.parametrize(
    ("behaviour", "word", "said"),
    [
        ({}, "no_difference_seen", "no difference seen at these shapes"),
        (dict.fromkeys(BEHAVIOUR, f"v1:{H2}"), "something_else", "compute something else: everything probed"),
        ({"linear.m1": Unknown("two runs")}, "no_difference_seen", "at these shapes; not compared: linear m1"),
        (dict.fromkeys(BEHAVIOUR, Unknown("two runs")), "unknown", "unknown, two runs"),
        (dict.fromkeys(BEHAVIOUR, ...), "unknown", "unknown, the candidate ran none"),
    ],
)
def test_the_microprobes_word(behaviour: dict[str, object], word: str, said: str) -> None:
    made = found(environment(), environment(behaviour=behaviour)).microprobes
    assert (made.word, said in made.sentence) == (word, True)
    assert "alike" not in made.sentence


def test_the_json_shape() -> None:
    new = environment({"keys.unexpected": ["x"]}, {"library.torch": "2.14.0", "isa.mkl": Unknown("no verbose run")})
    body = found(environment(), new).to_json()
    assert sorted(body) == ["likeliest", "microprobes", "ruled", "suspects", "undetermined"]
    torch = next(one for one in body["suspects"] if one["name"] == "library.torch")
    assert torch == {
        "section": "stack",
        "name": "library.torch",
        "kind": "changed",
        "before": {"value": "2.13.0"},
        "after": {"value": "2.14.0"},
        "sentence": "torch was upgraded from 2.13.0 to 2.14.0",
    }
    unexpected = next(one for one in body["suspects"] if one["name"] == "keys.unexpected")
    assert (unexpected["before"], unexpected["after"]) == (None, {"value": ["x"]})
    assert body["undetermined"] == [{"section": "stack", "name": "isa.mkl", "reason": "unknown now, no verbose run"}]
    assert body["ruled"][0] == {"matter": "weights", "word": "same", "sentence": "weight files: the same"}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("2.9.1", "2.13.0", "upgraded"),  # as numbers, not as text
        ("2.13.0", "2.9.1", "downgraded"),
        ("2.13.0+cpu", "2.13.0+cu130", "torch went from 2.13.0+cpu to 2.13.0+cu130"),
        ("2.13.0", ..., "torch is gone (2.13.0)"),
        (..., "2.13.0", "torch is new (2.13.0)"),
    ],
)
def test_versions_read_well(before: object, after: object, said: str) -> None:
    old, new = (environment(stack={"library.torch": version}) for version in (before, after))
    assert said in found(old, new).likeliest
