"""Environments: what may change the numbers, and what differs between two of them. No torch."""

from driftpin.environment.difference import Change, FactDifference, difference, equalities
from driftpin.environment.environment import Environment, Equality, Facts, Section, equality
from driftpin.environment.fact import Fact, Unknown

__all__ = [
    "Change",
    "Environment",
    "Equality",
    "Fact",
    "FactDifference",
    "Facts",
    "Section",
    "Unknown",
    "difference",
    "equalities",
    "equality",
]
