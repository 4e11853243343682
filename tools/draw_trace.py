#!/usr/bin/env python3
"""Draws traces of `interp run --trace` as one SVG: a lane per stream of each device, time to the right.

  draw_trace.py out.svg "title=trace.json" ["title=trace.json" ...]

All traces have the same scale. For looking at how copies and kernels overlap, and for the docs; to
explore a trace open it in chrome://tracing or ui.perfetto.dev instead.
"""
import json
import sys
from html import escape

LEFT, WIDTH, LANE, GAP = 90, 860, 26, 34
COLOURS = {"h2d": "#4f86c6", "d2h": "#7a5fa8", "p2p": "#4c9a6a", "kernel": "#d98236"}


def lanes_of(path):
    """[(stream, [(start, end, kind, op)])] of the devices, in us."""
    with open(path) as file:
        trace = json.load(file)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    devices = {e["pid"] for e in events
               if e["ph"] == "M" and e["name"] == "process_name" and e["args"]["name"] != "host"}
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events
             if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] in devices}
    spans = {key: [] for key in names}
    for e in events:
        if e["ph"] == "X" and (e["pid"], e["tid"]) in spans:
            spans[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"], e["cat"], e["name"]))
    return [(names[key], spans[key]) for key in sorted(spans) if spans[key]]


def main():
    if len(sys.argv) < 3 or not all("=" in a for a in sys.argv[2:]):
        sys.exit(__doc__)
    pictures = [(title, lanes_of(path)) for title, path in
                (a.split("=", 1) for a in sys.argv[2:])]
    last = max(end for _, lanes in pictures for _, spans in lanes for _, end, _, _ in spans)
    scale = WIDTH / last
    body, y = [], 8
    for title, lanes in pictures:
        end = max(e for _, spans in lanes for _, e, _, _ in spans)
        body.append(f'<text x="{LEFT}" y="{y + 14}" font-weight="bold">{escape(title)}: '
                    f'{end / 1000:.3f} ms</text>')
        y += 22
        for name, spans in lanes:
            body.append(f'<text x="{LEFT - 8}" y="{y + 17}" text-anchor="end">{escape(name)}</text>')
            body.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{LANE - 4}" fill="#f0f0f0"/>')
            for start, end, kind, op in spans:
                body.append(f'<rect x="{LEFT + start * scale:.1f}" y="{y}" '
                            f'width="{max(0.5, (end - start) * scale):.1f}" height="{LANE - 4}" '
                            f'fill="{COLOURS.get(kind, "#888")}" stroke="#fff" stroke-width="0.7">'
                            f'<title>{escape(op)}</title></rect>')
            y += LANE
        y += GAP - LANE
    with open(sys.argv[1], "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 10}" height="{y}" '
                   'font-family="sans-serif" font-size="12">\n'
                   '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n")


if __name__ == "__main__":
    main()
