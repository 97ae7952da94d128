"""The difference of two environments: kinds, order, and what an unknown means."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from driftpin.environment import Change, Environment, Equality, Section, Unknown, difference, equalities


def environment(model=None, stack=None, behaviour=None) -> Environment:
    return Environment(model=model or {}, stack=stack or {}, behaviour=behaviour or {})


def test_equal_environments_do_not_differ() -> None:
    one = environment({"weights.a": "1"}, {"library.torch": "2"}, {"softmax.m1": "3"})
    assert difference(one, one) == ()
    assert set(equalities(one, one).values()) == {Equality.SAME}


def test_each_kind_carries_both_values() -> None:
    a = environment(stack={"flag.a": 1, "flag.b": 2, "flag.c": Unknown("why"), "flag.same": 0})
    b = environment(stack={"flag.a": 3, "flag.c": 5, "flag.d": 4, "flag.same": 0})
    found = {d.name: (d.kind, d.before, d.after) for d in difference(a, b)}
    assert found == {
        "flag.a": (Change.CHANGED, 1, 3),
        "flag.b": (Change.REMOVED, 2, None),
        "flag.c": (Change.UNDETERMINED, Unknown("why"), 5),
        "flag.d": (Change.ADDED, None, 4),
    }


def test_an_unknown_equals_nothing_not_even_itself() -> None:
    a = environment(stack={"isa.mkl": Unknown("no verbose run")})
    (found,) = difference(a, a)
    assert found.kind is Change.UNDETERMINED
    assert equalities(a, a)[Section.STACK] is Equality.UNDETERMINED


def test_true_is_not_mistaken_for_text() -> None:
    (found,) = difference(environment(stack={"flag.a": True}), environment(stack={"flag.a": "true"}))
    assert found.kind is Change.CHANGED


def test_the_likeliest_cause_stands_first() -> None:
    likeliest_first = [
        ("model", "weights.model.safetensors"),
        ("model", "parameters.total"),
        ("model", "template"),
        ("model", "tokenizer.backend"),
        ("stack", "dtype"),
        ("stack", "attention.sdpa"),
        ("stack", "flag.cudnn.benchmark"),
        ("stack", "device.class"),
        ("stack", "isa.aten"),
        ("stack", "library.torch"),
        ("stack", "library.nvidia-cublas"),
        ("stack", "object.libm.so.6"),
        ("stack", "library.safetensors"),
        ("stack", "variable.OMP_NUM_THREADS"),
        ("stack", "something.else"),
        ("behaviour", "linear.m1"),
    ]
    before, after = ({"model": {}, "stack": {}, "behaviour": {}} for _ in range(2))
    for section, name in sorted(likeliest_first):
        before[section][name], after[section][name] = "old", "new"
    found = [(d.section.value, d.name) for d in difference(Environment(**before), Environment(**after))]
    assert found == likeliest_first


def test_what_may_be_equal_stands_behind_what_is_not() -> None:
    a = environment({"weights.a": Unknown("unreadable")}, {"variable.OMP_NUM_THREADS": "1"})
    b = environment({"weights.a": Unknown("unreadable")}, {"variable.OMP_NUM_THREADS": "2"})
    assert [d.name for d in difference(a, b)] == ["variable.OMP_NUM_THREADS", "weights.a"]


facts = st.dictionaries(
    st.sampled_from(["weights.a", "flag.b", "library.torch", "x"]),
    st.one_of(st.integers(0, 2), st.none(), st.booleans(), st.sampled_from([Unknown(""), Unknown("why")])),
)


@given(facts, facts)
def test_difference_and_equality_never_contradict_each_other(a, b) -> None:
    one, two = environment(stack=a), environment(stack=b)
    kinds = {d.kind for d in difference(one, two)}
    expected = Equality.SAME
    if kinds & {Change.ADDED, Change.REMOVED, Change.CHANGED}:
        expected = Equality.DIFFERENT
    elif kinds:
        expected = Equality.UNDETERMINED
    assert equalities(one, two)[Section.STACK] is expected
