# SPDX-License-Identifier: MIT
"""Draws the panels of a Grafana dashboard as SVG, with the data of a Prometheus.

metrics_picture.py URL DASHBOARD SECONDS FILE: the last SECONDS, with a step of half a second.
"""
import html
import json
import os
import sys
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../scripts"))
import palette  # noqa: E402

WIDTH, HEIGHT, LEFT, TOP, COLUMNS = 560, 200, 62, 34, 2
places = {}     # label values: a job has one colour in all panels


def series(url, expr, seconds):
    for name, value in (("$__rate_interval", "10s"), ("$user", ".*"), ("$name", ".*")):
        expr = expr.replace(name, value)
    now = time.time()
    query = urllib.parse.urlencode(
        {"query": expr, "start": now - seconds, "end": now, "step": 0.5})
    with urllib.request.urlopen(url + "/api/v1/query_range?" + query) as answer:
        return now - seconds, json.load(answer)["data"]["result"]


def scaled(value, unit):
    if unit == "percentunit":
        return "%.3g %%" % (value * 100)
    if unit == "bytes":
        return "%.3g MiB" % (value / 2 ** 20)
    return "%.3g" % value


def panel(out, at, what, url, seconds):
    x0, y0 = at[0] + LEFT, at[1] + TOP
    width, height = WIDTH - LEFT - 20, HEIGHT - TOP - 58
    target = what["targets"][0]
    begin, found = series(url, target["expr"], seconds)
    points = [[(float(t) - begin, float(v)) for t, v in s["values"] if v != "NaN"] for s in found]
    most = max([v for line in points for _, v in line] + [0]) or 1
    unit = what["fieldConfig"]["defaults"]["unit"]
    text = '<text x="%g" y="%g" font-size="%d"%s>%s</text>'
    out.append(text % (at[0] + 8, at[1] + 20, 13, ' font-weight="bold"',
                       html.escape(what["title"])))
    for part in (0, 0.5, 1):
        y = y0 + height * (1 - part)
        out.append('<path d="M%g %gh%g" stroke="%s" stroke-opacity="0.4"/>'
                   % (x0, y, width, palette.EDGE))
        out.append(text % (x0 - 6, y + 4, 10, ' text-anchor="end"', scaled(most * part, unit)))
    for i, (line, one) in enumerate(zip(points, found)):
        label = one["metric"].get("name") or one["metric"].get("pci") or "value"
        colour = palette.TENANTS[places.setdefault(label, len(places)) % len(palette.TENANTS)]
        path = " ".join("%g,%g" % (x0 + width * t / seconds, y0 + height * (1 - v / most))
                        for t, v in line)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.8"/>'
                   % (path, colour))
        across = 8 + (i % 4) * (WIDTH - 20) / 4
        y = y0 + height + 18 + 14 * (i // 4)
        out.append('<rect x="%g" y="%g" width="9" height="9" fill="%s"/>'
                   % (at[0] + across, y - 8, colour))
        out.append(text % (at[0] + across + 13, y, 11, "", html.escape(label)))


def main():
    url, dashboard, seconds, path = sys.argv[1:]
    with open(dashboard, encoding="utf-8") as file:
        panels = [p for p in json.load(file)["panels"] if p["type"] == "timeseries"]
    size = (WIDTH * COLUMNS, HEIGHT * -(-len(panels) // COLUMNS) + 24)
    out = palette.begin(*size, "gpupart's dashboard")
    for i, what in enumerate(panels):
        panel(out, (i % COLUMNS * WIDTH, i // COLUMNS * HEIGHT), what, url, float(seconds))
    out.append('<text x="8" y="%d" font-size="11">simulated GPU; the last %s s</text></svg>'
               % (size[1] - 8, seconds))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


main()
