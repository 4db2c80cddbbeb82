// The pictures. Each gives its height and then its parts, for a width.

const KINDS = { policy: "policy", twin: "cloning twin", data: "logged data" };

/** Values with intervals, one line each. */
function intervals(rows, width) {
  const line = 42, top = 4, left = 2, right = width - 8, bottom = top + rows.length * line;
  const spans = rows.flatMap(({ score }) => [score.value, score.low, score.high]);
  const x = scale(extent(spans, 0.06), [left, right]);
  const marks = rows.map(({ kind, label, score }, i) => {
    const y = top + i * line + 30;
    const from = x(score.low ?? score.value), to = x(score.high ?? score.value);
    const start = Math.min(Math.max(left, from - 4), Math.max(left, right - 7 * (label.length + score.text.length + 3)));
    return sv("g", {}, titled(`${label}: ${score.text}`),
      sv("text", { class: "strong", x: start, y: y - 11 }, label, sv("tspan", { dx: 8 }, score.text)),
      sv("line", { class: `line-${kind}`, x1: from, x2: to, y1: y, y2: y, "stroke-width": 4, opacity: 0.45, "stroke-linecap": "round" }),
      shape(kind, x(score.value), y, 5.5));
  });
  return [bottom + 24, bottomAxis(x, [left, right], bottom + 2, "", top), marks];
}

/** Equal points together: [x, y, …, share]. */
function pooled(sample) {
  const counts = new Map();
  for (const point of sample) {
    const key = point.join(" ");
    counts.set(key, [point, (counts.get(key)?.[1] ?? 0) + 1]);
  }
  return [...counts.values()].map(([point, count]) => ({ point, share: count / sample.length }));
}

/** Episodes of two objectives; the area of a point is the share of episodes that it stands for. */
function scatter(samples, objectives, width) {
  const height = Math.min(430, Math.max(300, width * 0.72)), left = 46, right = width - 12, top = 26, bottom = height - 44;
  const all = Object.values(samples).flatMap((one) => one.sample);
  const x = scale(extent(all.map((p) => p[0]), 0.08), [left, right]);
  const y = scale(extent(all.map((p) => p[1]), 0.08), [bottom, top]);
  const layers = ["data", "twin", "policy"].filter((kind) => samples[kind]).map((kind) => sv("g", { "data-kind": kind },
    pooled(samples[kind].sample).sort((a, b) => b.share - a.share).map(({ point, share }) =>
      shape(kind, x(point[0]), y(point[1]), Math.max(2.4, 26 * Math.sqrt(share)), { opacity: kind === "data" ? 0.3 : 0.55 },
        titled(`${KINDS[kind]}: ${objectives.map((name, i) => `${name} ${show(point[i])}`).join(", ")} (${percent(share)})`)))));
  const means = ["data", "twin", "policy"].filter((kind) => samples[kind]).map((kind) => {
    const [a, b] = [x(samples[kind].mean[0]), y(samples[kind].mean[1])];
    return sv("path", { class: `line-${kind}`, d: `M${a - 8} ${b}h16M${a} ${b - 8}v16`, "stroke-width": 3 }, titled(`mean of the ${KINDS[kind]}`));
  });
  return [height, leftAxis(y, [top, bottom], left, right, `return of ${objectives[1]}`),
    bottomAxis(x, [left, right], bottom, `return of ${objectives[0]}`, top), layers, means];
}

/** Episodes of three and more objectives: an axis for each, a line for each episode, thick lines for the means. */
function parallel(samples, objectives, width) {
  const height = 340, left = 30, right = width - 34, top = 40, bottom = height - 30, count = objectives.length;
  const all = Object.values(samples).flatMap((one) => one.sample);
  const at = (i) => left + (i * (right - left)) / (count - 1);
  const scales = objectives.map((_, i) => scale(extent(all.map((p) => p[i])), [bottom, top]));
  const path = (point) => "M" + point.map((value, i) => `${at(i).toFixed(1)} ${scales[i](value).toFixed(1)}`).join("L");
  const kinds = ["data", "twin", "policy"].filter((kind) => samples[kind]);
  const lines = kinds.map((kind) => sv("g", { "data-kind": kind, class: `line-${kind}`, fill: "none" },
    pooled(samples[kind].sample.slice(0, 150)).map(({ point, share }) =>
      sv("path", { d: path(point), "stroke-width": Math.max(1, 10 * share), opacity: kind === "policy" ? 0.28 : 0.13 }))));
  const means = kinds.map((kind) => sv("path", { class: `line-${kind}`, d: path(samples[kind].mean), fill: "none", "stroke-width": 3.5, "stroke-dasharray": kind === "policy" ? null : kind === "twin" ? "8 4" : "2 4" }, titled(`mean of the ${KINDS[kind]}`)));
  const axes = objectives.map((name, i) => sv("g", {},
    sv("line", { class: "axis", x1: at(i), x2: at(i), y1: top, y2: bottom, "stroke-width": 2 }),
    sv("text", { class: "strong", x: at(i), y: top - 20, "text-anchor": i === 0 ? "start" : i === count - 1 ? "end" : "middle", dx: i === 0 ? -left : i === count - 1 ? 34 : 0 }, clip(name, Math.floor(width / count / 7.5))),
    ticks(scales[i].domain, 5).map((value) => sv("text", { x: at(i) + 5, y: scales[i](value) + 4 }, show(value)))));
  return [height, lines, axes, means];
}

/** Of one objective: 5 to 95 % as a line, the middle half as a bar, the median and the mean of the worst tenth. */
function strips(samples, index, width) {
  const kinds = Object.keys(KINDS).filter((kind) => samples[kind]);
  const line = 30, left = 2, right = width - 8, bottom = 4 + kinds.length * line;
  const x = scale(extent(kinds.flatMap((kind) => [...samples[kind].quantiles.map((q) => q[index]), samples[kind].tail[index]])), [left, right]);
  const marks = kinds.map((kind, i) => {
    const y = 4 + i * line + line / 2, [low, lower, middle, upper, high] = samples[kind].quantiles.map((q) => x(q[index]));
    return sv("g", {}, titled(`${KINDS[kind]}: ${samples[kind].quantiles.map((q) => show(q[index])).join(", ")}`),
      sv("line", { class: `line-${kind}`, x1: low, x2: high, y1: y, y2: y, "stroke-width": 2 }),
      sv("rect", { class: `fill-${kind}`, x: Math.min(lower, upper - 2), y: y - 7, width: Math.max(2, upper - lower), height: 14, opacity: 0.4, rx: 2 }),
      sv("line", { class: `line-${kind}`, x1: middle, x2: middle, y1: y - 9, y2: y + 9, "stroke-width": 4 }),
      sv("path", { class: `fill-${kind}`, d: `M${x(samples[kind].tail[index])} ${y - 6}l5 -8h-10z` }));
  });
  return [bottom + 26, bottomAxis(x, [left, right], bottom + 4, "", 0), marks];
}

/** Shares of episodes in words and bars, one group of bars for each name. */
function shares(names, series, width) {
  const bar = 13, group = 22 + bar * series.length, left = 2, right = width - 58;
  const groups = names.map((name, i) => sv("g", {},
    sv("text", { class: "strong", x: left, y: i * group + 13 }, clip(name, Math.floor(width / 7))),
    series.map(({ kind, label, found }, j) => found[name] !== undefined && sv("g", {}, titled(`${label}, ${name}: ${percent(found[name])}`),
      sv("rect", { class: `fill-${kind}`, x: left, y: i * group + 18 + j * bar, width: Math.max(1, found[name] * (right - left)), height: bar - 3, rx: 2 }),
      sv("text", { x: left + found[name] * (right - left) + 6, y: i * group + 27 + j * bar }, percent(found[name]))))));
  return [names.length * group + 4, groups];
}

/** One column's score at every stop of a slider; the one shown now is filled, and diamonds are references. */
function along(stops, width) {
  const height = 190, left = 46, right = width - 14, top = 12, bottom = height - 42;
  const y = scale(extent(stops.flatMap(({ score, reference }) => [score.value, score.low, score.high, reference]), 0.1), [bottom, top]);
  const x = (i) => (stops.length === 1 ? (left + right) / 2 : left + 12 + (i * (right - left - 24)) / (stops.length - 1));
  const every = Math.ceil(stops.length / Math.max(1, Math.floor((right - left) / 52)));
  const marks = stops.map(({ label, score, reference, current }, i) => sv("g", {}, titled(`${label}: ${score.text}`),
    Number.isFinite(reference) && shape("optimum", x(i), y(reference), 3.5, {}, titled(`${label}: best known ${show(reference)}`)),
    score.low !== undefined && sv("line", { class: "line-policy", x1: x(i), x2: x(i), y1: y(score.low), y2: y(score.high), "stroke-width": 3, opacity: 0.5 }),
    shape(current ? "policy" : "other", x(i), y(score.value), current ? 6.5 : 4.5),
    (i % every === 0 || current) && sv("text", { class: current ? "strong" : "", x: x(i), y: bottom + 18, "text-anchor": "middle" }, clip(label, 12))));
  const path = "M" + stops.map(({ score }, i) => `${x(i)} ${y(score.value)}`).join("L");
  return [height - 14, leftAxis(y, [top, bottom], left, right, ""), sv("path", { class: "line-policy", d: path, fill: "none", opacity: 0.35 }), marks];
}

/** Expected returns of all policies in two objectives; those that no other dominates are joined. */
function front(points, objectives, [a, b], width) {
  const height = Math.min(400, Math.max(280, width * 0.62)), left = 46, right = width - 12, top = 26, bottom = height - 44;
  const x = scale(extent(points.map(({ mean }) => mean[a]), 0.1), [left, right]);
  const y = scale(extent(points.map(({ mean }) => mean[b]), 0.1), [bottom, top]);
  const best = points.filter(({ on }) => on).sort((p, q) => p.mean[a] - q.mean[a]);
  const path = objectives.length === 2 && best.length > 1 && sv("path", { class: "line-policy", fill: "none", opacity: 0.4, "stroke-width": 2, d: "M" + best.map(({ mean }) => `${x(mean[a])} ${y(mean[b])}`).join("L") });
  const marks = [...points].sort((p, q) => p.current - q.current).map(({ kind, mean, on, current, label }) =>
    shape(current ? "policy" : kind === "policy" ? "other" : kind, x(mean[a]), y(mean[b]), current ? 7.5 : on ? 6 : 4, {}, titled(`${label}: ${objectives.map((name, i) => `${name} ${show(mean[i])}`).join(", ")}${on ? "; not dominated" : ""}`)));
  return [height, leftAxis(y, [top, bottom], left, right, `expected return of ${objectives[b]}`),
    bottomAxis(x, [left, right], bottom, `expected return of ${objectives[a]}`, top), path, marks];
}

/** A metric while training: the member shown now over all others. */
function curve({ steps, values }, member, width) {
  const height = 140, left = 50, right = width - 10, top = 8, bottom = height - 22;
  const x = scale([Math.min(0, steps[0]), steps.at(-1) || 1], [left, right]);
  const y = scale(extent(values.flat(), 0.08), [bottom, top]);
  const path = (line) => line.map((value, i) => (value === null ? "" : `${i && line[i - 1] !== null ? "L" : "M"}${x(steps[i]).toFixed(1)} ${y(value).toFixed(1)}`)).join("");
  const lines = values.map((line, i) => i !== member && sv("path", { class: "line-other faint", d: path(line), fill: "none" }));
  return [height, leftAxis(y, [top, bottom], left, right, ""), bottomAxis(x, [left, right], bottom, ""), lines,
    sv("path", { class: "line-policy", d: path(values[member]), fill: "none", "stroke-width": 2.2 }),
    steps.length === 1 && values[member][0] !== null && shape("policy", x(steps[0]), y(values[member][0]), 4)];
}
