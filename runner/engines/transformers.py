"""The engine that runs models through the transformers library. Knows canaries and recipes; no store, no baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch

from driftpin.environment.environment import Environment
from driftpin.environment.reference import AS_STORED
from driftpin.errors import CannotMeasureError, SuiteError
from driftpin.settings.recipe import Recipe
from driftpin.suite.canary import Canary, CanarySettings, Suite, input_digest
from driftpin.trace.probe import Arm, Probe, Shape, TraceKey
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Trace
from runner.capture import capture_environment
from runner.dequantise import label, method_of, read_dequantised
from runner.determinism import Applied, attention_context, cannot_run, prepare, prove_attention
from runner.engines import bench as runs
from runner.engines.batching import Vocabulary
from runner.engines.bench import Bench, Scoring
from runner.engines.blockwise import Blockwise, Outcome
from runner.engines.caches import static_length
from runner.engines.foreseen import Foreseen
from runner.engines.observer import observe_score, observer_check
from runner.engines.protocol import Rendered, ScoreRequest, Told, untold
from runner.engines.reference import Choice, Way, asked_way, choose, no_decode
from runner.engines.remembered import Remembered
from runner.loading import Loaded, device_of, load_model
from runner.memory import room_on
from runner.model_folder import check_folder
from runner.piecewise import Pieces, load_in_pieces
from runner.rendering import render, token_pieces
from runner.sampling import SamplingReport, generate_kwargs, install
from runner.skeleton import count_parameters, empty_model

WARM_UP_PROMPT, WARM_UP_TOKENS = 16, 4
FORCES = ("forced_bos_token_id", "forced_eos_token_id")
STATIC = "static"

T = TypeVar("T")


class TransformersEngine:
    """One model of the transformers library in one process and one arm; see `runner.engines.protocol.Engine`."""

    def __init__(self, recipe: Recipe, arm: Arm, suite: Suite) -> None:
        self._recipe, self._arm, self._suite = recipe, arm, suite
        self._applied: Applied | None = None
        self._loaded: Loaded | None = None
        self._sampling: SamplingReport | None = None
        self._bench: Bench | None = None
        self._choice: Choice | None = None  # of the reference arm
        self._pieces: Pieces | None = None  # where it runs block by block
        self._blockwise: Blockwise | None = None
        self._foreseen = Foreseen(self._measure_foreseen)
        self._told: Told = untold

    def load(self) -> None:
        """Switches first, then weights, then the sampling mode, then a trial call of the pinned attention."""
        self._applied = prepare(self._recipe, self._arm)
        if self._arm is Arm.REFERENCE:
            self._choice = self._chosen()
        if self._choice is not None and self._choice.way is Way.BLOCK_BY_BLOCK:
            self._loaded, self._pieces = load_in_pieces(self._recipe, self._arm)
            self._blockwise = Blockwise(self._pieces)
        else:
            quantised = self._choice is not None and self._choice.weights != AS_STORED
            self._loaded = load_model(self._recipe, self._arm, read_dequantised if quantised else None)
        self._sampling = install(self._loaded.model, self._recipe)
        self._prove_attention(self._loaded.model)
        self._bench = self._prepared(self._loaded.model, self._loaded.tokenizer)

    def environment(self, *, verify_weights: bool = False) -> Environment:
        """Facts of the loaded model, the libraries and the device, as they are now; weight files in full if asked."""
        found = capture_environment(
            _ready(self._loaded),
            self._recipe,
            self._arm,
            _ready(self._applied),
            _ready(self._sampling),
            verify_weights=verify_weights,
        )
        return found if self._choice is None else replace(found, context={**found.context, **self._choice.facts()})

    def render(self, canary: Canary, clock: str | None) -> Rendered:
        """Text and ids of a canary's prompt."""
        return render(_ready(self._loaded).tokenizer, canary, clock)

    def warm_up(self) -> None:
        """Sixteen filler tokens in, four out, then their score; in the reference arm the score of four more.

        Block by block only the way to the first block is tried: more would load every block once more.
        """
        bench = _ready(self._bench)
        ids = bench.vocabulary.filler(0, WARM_UP_PROMPT)
        tokens = bench.vocabulary.filler(1, WARM_UP_TOKENS)
        if self._arm is Arm.NATIVE:
            arguments = self._arguments(CanarySettings(max_new_tokens=WARM_UP_TOKENS))
            with self._measuring(Probe.DECODE):
                tokens = runs.decode(bench, ids, Shape.ALONE, arguments).output_ids
        with self._measuring(Probe.SCORE):
            make = partial(Scoring, bench, ids, Shape.ALONE, tokens, WARM_UP_TOKENS)
            if self._blockwise is not None:
                self._blockwise.try_out(make)
            else:
                make().run()

    def observer_check(self, canary: Canary, rendered: Rendered) -> str | None:
        """Logits with recording on and off, alone: of a decode and a score, or of what the arm runs."""
        if self._pieces is not None:
            raise CannotMeasureError("Block by block every score is recorded: there is none to compare with.")
        if self._arm is Arm.REFERENCE:
            tokens = _ready(self._bench).vocabulary.filler(1, WARM_UP_TOKENS)
            with self._measuring(Probe.SCORE):
                return observe_score(_ready(self._bench), rendered.ids, torch.tensor(tokens))
        with self._measuring(Probe.DECODE):
            return observer_check(_ready(self._bench), rendered.ids, self._arguments(canary.settings))

    def decode(self, key: TraceKey, canary: Canary, rendered: Rendered) -> Trace:
        """Greedy generation through the model's ordinary `generate`; refused in the reference arm."""
        if self._arm is Arm.REFERENCE:
            raise no_decode()
        with self._measuring(Probe.DECODE):
            made = runs.decode(_ready(self._bench), rendered.ids, key.shape, self._arguments(canary.settings))
        return self._trace(key, canary, rendered, made)

    def foresee(self, requests: Sequence[ScoreRequest], told: Told = untold) -> None:
        """Of use only where the model is loaded block by block: then once for all of them."""
        self._foreseen.foresee(requests)
        self._told = told

    def score(self, key: TraceKey, canary: Canary, rendered: Rendered, output_ids: Sequence[int]) -> Trace:
        """One teacher-forced forward over the prompt and all given outputs but the last."""
        request = ScoreRequest(key=key, canary=canary, rendered=rendered, output_ids=tuple(output_ids))
        with self._measuring(Probe.SCORE):
            made = self._foreseen.take(request) if self._pieces is not None else self._scoring(request).run()
        return self._trace(key, canary, rendered, made)

    def close(self) -> None:
        """Let go of the model and of its device memory."""
        self._foreseen.clear()
        if self._pieces is not None:
            self._pieces.close()
        self._bench = self._loaded = self._pieces = self._blockwise = None
        torch.cuda.empty_cache()  # does nothing where CUDA was never started

    def _chosen(self) -> Choice:
        """How the reference runs: as asked, else as the memory allows."""
        folder = check_folder(self._recipe.path)[0].parent
        parameters = count_parameters(empty_model(folder, self._recipe))
        method = method_of(folder)
        weights = AS_STORED if method is None else label(method)
        return choose(asked_way(self._recipe), parameters, room_on(device_of(self._recipe)), weights)

    def _scoring(self, request: ScoreRequest) -> Scoring:
        key, limit = request.key, request.canary.settings.max_new_tokens
        return Scoring(_ready(self._bench), request.rendered.ids, key.shape, request.output_ids, limit, key.repeat)

    def _measure_foreseen(self, requests: Sequence[ScoreRequest]) -> Sequence[Outcome]:
        return _ready(self._blockwise).run([partial(self._scoring, request) for request in requests], self._told)

    def _prepared(self, model: Any, tokenizer: Any) -> Bench:
        config, sampling = model.generation_config, _ready(self._sampling)
        return Bench(
            model=model,
            arm=self._arm,
            vocabulary=vocabulary(model, tokenizer),
            ends=frozenset(sampling.end_ids),
            forcing=any(getattr(config, name, None) is not None for name in FORCES),
            remembered=Remembered.of(model),
            static_length=self._static_length(tokenizer) if self._recipe.cache == STATIC else None,
        )

    def _static_length(self, tokenizer: Any) -> int:
        """Of the whole suite, whichever canaries run; one that does not render is refused when its turn comes."""
        longest = WARM_UP_PROMPT + WARM_UP_TOKENS
        for canary in self._suite.canaries:
            try:
                prompt = len(render(tokenizer, canary, self._suite.clock).ids)
            except SuiteError:
                continue
            longest = max(longest, prompt + canary.settings.max_new_tokens)
        return static_length(longest)

    def _prove_attention(self, model: Any) -> None:
        config = model.config.get_text_config(decoder=True)
        heads = int(config.num_attention_heads)
        prove_attention(
            self._recipe,
            self._arm,
            model.dtype,
            int(getattr(config, "head_dim", None) or config.hidden_size // heads),
            heads=heads,
            kv_heads=int(getattr(config, "num_key_value_heads", None) or heads),
            masked=self._recipe.cache == STATIC,
        )

    def _arguments(self, settings: CanarySettings) -> dict[str, Any]:
        return generate_kwargs(_ready(self._loaded).model, self._recipe, settings)

    def _trace(self, key: TraceKey, canary: Canary, rendered: Rendered, made: runs.Run) -> Trace:
        pieces = token_pieces(_ready(self._loaded).tokenizer, made.output_ids)
        return Trace(
            key=key,
            input_digest=input_digest(rendered.ids, canary.settings),
            head=made.head,
            layers=made.layers,
            text=TraceText(rendered=rendered.text, pieces=pieces),
            layers_absent=made.layers_absent,
        )

    @contextmanager
    def _measuring(self, probe: Probe) -> Iterator[None]:
        """The pinned attention; refusals of the framework become `CannotMeasureError`."""
        try:
            with attention_context(self._recipe, self._arm, probe):
                yield
        except torch.cuda.OutOfMemoryError as error:
            raise CannotMeasureError(
                f"The device ran out of memory: {str(error).splitlines()[0]}",
                remedy="Free the device, shorten the prompt, or leave out the filled and padded shapes.",
            ) from error
        except RuntimeError as error:
            refused = cannot_run(error)
            if refused is None:
                raise
            raise refused from error


def _ready(part: T | None) -> T:
    if part is None:
        raise RuntimeError("load() was not called, or close() was")
    return part


def vocabulary(model: Any, tokenizer: Any) -> Vocabulary:
    """Ids for filler rows: known to model and tokenizer, neither special nor added by hand."""
    size = min(int(model.config.get_text_config(decoder=True).vocab_size), len(tokenizer))
    special = {*tokenizer.all_special_ids, *getattr(tokenizer, "added_tokens_decoder", {})}
    pads = (model.generation_config.pad_token_id, tokenizer.pad_token_id, 0)
    return Vocabulary.of(size, special, next(int(pad) for pad in pads if pad is not None))
