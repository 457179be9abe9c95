"""The pictures of the digits example, as PNG files: a loss curve and a graph of what was compiled."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import networkx as nx
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def save_loss_curve(losses: Sequence[float], path: Path) -> None:
    """Loss per step on a logarithmic axis, with its running mean over 20 steps."""
    smooth = np.convolve(losses, np.ones(20) / 20, mode="valid")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.semilogy(losses, color="#b8c4d6", linewidth=0.7, label="minibatch")
    axes.semilogy(np.arange(len(smooth)) + len(losses) - len(smooth), smooth, color="#1f4e8c", label="mean of 20")
    axes.set(xlabel="step", ylabel="loss", title="training loss")
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def layered(graph: nx.DiGraph, widths: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Positions with every value below the values that it uses, inputs right above their first use, side by side."""
    depth = {n: k for k, layer in enumerate(nx.topological_generations(graph)) for n in layer}
    for n in graph:
        if graph.in_degree(n) == 0 and graph.out_degree(n) > 0:
            depth[n] = min(depth[q] for q in graph.successors(n)) - 1
    positions: dict[str, tuple[float, float]] = {}
    for layer in range(max(depth.values()) + 1):
        near = {n: np.mean([positions[p][0] for p in graph.predecessors(n)] or [0.0])
                for n in graph if depth[n] == layer}
        x = -sum(widths[n] for n in near) / 2
        for n in sorted(near, key=lambda n: (near[n], str(n))):
            positions[n] = (x + widths[n] / 2, -float(layer))
            x += widths[n]
    return positions


def save_graph(function, path: Path) -> None:
    """The optimized graph of a compiled function, drawn without Graphviz."""
    graph = function.to_networkx()
    for n in [n for n, data in graph.nodes(data=True) if data["label"].startswith("get\n")]:  # one of several results
        graph.add_edges_from((p, q) for p in graph.predecessors(n) for q in graph.successors(n))
        graph.remove_node(n)
    labels = {n: data["label"] for n, data in graph.nodes(data=True)}
    positions = layered(graph, {n: 0.058 * max(map(len, text.split("\n"))) + 0.3 for n, text in labels.items()})
    xs, ys = zip(*positions.values(), strict=True)
    figure, axes = plt.subplots(figsize=(max(xs) - min(xs) + 2, 0.55 * (max(ys) - min(ys)) + 1), layout="constrained")
    nx.draw_networkx_edges(graph, positions, ax=axes, edge_color="#8a99ad", arrowsize=8, node_size=300)
    nx.draw_networkx_labels(
        graph, positions, labels, ax=axes, font_size=6, font_family="monospace",
        bbox={"boxstyle": "round,pad=0.3", "facecolor": "#eef3fa", "edgecolor": "#1f4e8c", "linewidth": 0.6},
    )
    axes.margins(0.08)
    axes.set_axis_off()
    figure.savefig(path, dpi=150)
    plt.close(figure)
