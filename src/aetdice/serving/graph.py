"""A policy network as an ONNX graph: the same arithmetic, operation by operation, batched."""

import math
from typing import Any

import numpy as np
from jaxtyping import Shaped

from aetdice.errors import InputError
from aetdice.networks import JOINT_LIMIT, Categorical, Encoder, GaussianMixture, Perceptron, PolicyNetwork

OPSET, IR_VERSION = 20, 10
"""Of 2023: the first with GELU; runtimes of five years read both."""


class GraphBuilder:
    """Operations and constants of a graph, named by their number."""

    def __init__(self) -> None:
        self.onnx = load_onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Shaped[np.ndarray, "..."]) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def numbers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def add(self, operation: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """The name of its output, or a list of names."""
        names = [f"{operation.lower()}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(self.onnx.helper.make_node(operation, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def name(self, value: str, name: str) -> None:
        """An output of the graph."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))


def load_onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise InputError(f"onnx is not installed ({error}); pip install 'aetdice[ship]'") from error
    return onnx


def network_model(network: PolicyNetwork) -> Any:
    """(observations, accrued, time) ↦ the outputs of the head, as an ONNX model.

    A mixture is also told its course.
    """
    build = GraphBuilder()
    kinds = build.onnx.TensorProto
    features = _encode(build, network.encoder)
    if network.is_mixture:
        features = build.add("Concat", features, _course(build, len(network.courses)), axis=1)
    outputs = _perceive(build, network.net, features)
    shapes = _finish(build, network, outputs)
    encoder, info = network.encoder, build.onnx.helper.make_tensor_value_info
    told = [
        info(
            "observations", kinds.FLOAT if encoder.sizes is None else kinds.INT32, ["n", len(encoder.centre)]
        ),
        info("accrued", kinds.FLOAT, ["n", len(encoder.accrued_range)]),
        info("time", kinds.INT32, ["n"]),
        *([info("course", kinds.INT32, ["n"])] if network.is_mixture else []),
    ]
    given = [info(name, kinds.FLOAT, ["n", *shape]) for name, shape in shapes.items()]
    graph = build.onnx.helper.make_graph(build.nodes, "policy", told, given, build.constants)
    opset = [build.onnx.helper.make_opsetid("", OPSET)]
    return build.onnx.helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)


def _encode(build: GraphBuilder, encoder: Encoder) -> str:
    """`Encoder`, with its parts in the same order."""
    parts = _indicators(build, encoder) if encoder.sizes is not None else _scaled(build, encoder)
    if encoder.use_accrued:
        scaled = _divide(build, _symlog(build, "accrued"), encoder.accrued_range)
        parts += [scaled, *_fourier(build, scaled, len(encoder.accrued_range), encoder.fourier)]
    if encoder.use_time:
        elapsed = build.add("Cast", "time", to=build.onnx.TensorProto.FLOAT)
        share = _divide(build, elapsed, encoder.horizon)
        parts += _fourier(build, build.add("Unsqueeze", share, build.numbers(1)), 1, encoder.fourier)
    return str(build.add("Concat", *parts, axis=1))


def _course(build: GraphBuilder, count: int) -> str:
    """An indicator per course."""
    course = build.add("Cast", "course", to=build.onnx.TensorProto.INT64)
    return str(
        build.add("OneHot", course, build.numbers(count), build.constant(np.array([0, 1], np.float32)))
    )


def _divide(build: GraphBuilder, x: str, divisor: Any) -> str:
    """As XLA divides by a constant: the reciprocal times x. High frequencies show the last bit."""
    reciprocal = np.asarray(np.float32(1) / np.asarray(divisor, np.float32))
    return str(build.add("Mul", x, build.constant(reciprocal)))


def _scaled(build: GraphBuilder, encoder: Encoder) -> list[str]:
    centre = build.constant(np.asarray(encoder.centre, np.float32))
    scaled = _divide(build, build.add("Sub", "observations", centre), encoder.spread)
    half = build.add("Mul", scaled, build.constant(np.array(0.5, np.float32)))
    return [scaled, *_fourier(build, half, len(encoder.centre), encoder.observation_fourier)]


def _indicators(build: GraphBuilder, encoder: Encoder) -> list[str]:
    sizes = encoder.sizes or ()
    values = build.constant(np.array([0, 1], np.float32))
    observations = build.add("Cast", "observations", to=build.onnx.TensorProto.INT64)
    entries = [observations]
    if len(sizes) > 1:
        entries = build.add("Split", observations, outputs=len(sizes), axis=1, num_outputs=len(sizes))
    hot = [
        build.add("OneHot", entry, build.numbers(size), values)
        for entry, size in zip(entries, sizes, strict=True)
    ]
    if len(sizes) > 1 and math.prod(sizes) <= JOINT_LIMIT:
        places = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
        weighed = build.add("Mul", observations, build.numbers(*places))
        joint = build.add("ReduceSum", weighed, build.numbers(1), keepdims=1)
        hot.append(build.add("OneHot", joint, build.numbers(math.prod(sizes)), values))
    return [build.add("Squeeze", build.add("Concat", *hot, axis=2), build.numbers(1))]


def _symlog(build: GraphBuilder, x: str) -> str:
    """sign(x) log(1 + |x|); in double precision, for ONNX has no log1p."""
    kinds = build.onnx.TensorProto
    size = build.add("Cast", build.add("Abs", x), to=kinds.DOUBLE)
    logarithm = build.add("Log", build.add("Add", size, build.constant(np.array(1.0))))
    return str(build.add("Mul", build.add("Sign", x), build.add("Cast", logarithm, to=kinds.FLOAT)))


def _fourier(build: GraphBuilder, x: str, entries: int, frequencies: int) -> list[str]:
    """sin and cos of π 2^j x, entry by entry."""
    if frequencies == 0:
        return []
    factors = np.float32(np.pi) * 2.0 ** np.arange(-1, frequencies - 1, dtype=np.float32)
    angles = build.add("Mul", build.add("Unsqueeze", x, build.numbers(2)), build.constant(factors))
    both = build.add("Concat", build.add("Sin", angles), build.add("Cos", angles), axis=2)
    return [build.add("Reshape", both, build.numbers(0, entries * 2 * frequencies))]


def _perceive(build: GraphBuilder, net: Perceptron, x: str) -> str:
    for i, (weight, bias) in enumerate(zip(net.weights, net.biases, strict=True)):
        x = build.add("Gemm", x, build.constant(np.asarray(weight)), build.constant(np.asarray(bias)))
        if i < len(net.weights) - 1:
            x = build.add("Gelu", x, approximate="tanh")
    return x


def _finish(build: GraphBuilder, network: PolicyNetwork, outputs: str) -> dict[str, list[int]]:
    """Name the outputs of the head; their shapes after the batch."""
    head = network.head
    if isinstance(head, Categorical):
        build.name(outputs, "logits")
        return {"logits": [head.actions]}
    if not isinstance(head, GaussianMixture):
        raise InputError(f"a policy with a head of {type(head).__name__} cannot be exported")
    count, size = head.components, len(head.low)
    parts = build.numbers(count, count * size, count * size)
    choice, mean, log_std = build.add("Split", outputs, parts, outputs=3, axis=1)
    shape = build.numbers(0, count, size)
    start = np.linspace(-0.5, 0.5, count, dtype=np.float32)[:, None] * (count > 1)
    bounds = (build.constant(np.array(bound, np.float32)) for bound in (head.smallest, 1.0))
    shifted = build.add("Sub", log_std, build.constant(np.array(1.0, np.float32)))
    build.name(build.add("LogSoftmax", choice, axis=1), "log_weights")
    start_name = build.constant(start.astype(np.float32))
    build.name(build.add("Add", build.add("Reshape", mean, shape), start_name), "mean")
    build.name(build.add("Reshape", build.add("Clip", shifted, *bounds), shape), "log_std")
    return {"log_weights": [count], "mean": [count, size], "log_std": [count, size]}
