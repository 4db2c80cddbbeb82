"use strict";
// Elements, scales and axes. Text of the data is only ever set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const sv = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);
/** Text with subscripts: R_i, u_{1-α}. */
function formula(text) {
  return text.split(/(_\{[^}]*\}|_.)/).map((part) => (part.startsWith("_") ? el("sub", {}, part.replace(/[_{}]/g, "")) : part));
}

const titled = (words) => sv("title", {}, words);

function clip(words, most) {
  return words.length > most ? words.slice(0, most - 1) + "…" : words;
}

/** A number with the digits that people read. */
function show(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(1);
  const text = value.toFixed(Math.max(0, Math.min(3, 2 - Math.floor(Math.log10(size)))));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

const percent = (share) => (share * 100).toFixed(share > 0 && share < 0.095 ? 1 : 0) + "%";

/** The range of numbers, with some air around it. */
function extent(values, air = 0.05) {
  const known = values.filter(Number.isFinite);
  if (!known.length) return [0, 1];
  let low = known.reduce((a, b) => Math.min(a, b), Infinity);
  let high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  const room = (high - low || Math.abs(high) || 1) * (high === low ? 0.5 : air);
  return [low - room, high + room];
}

function scale([low, high], [from, to]) {
  const at = (value) => from + ((value - low) / (high - low)) * (to - from);
  at.domain = [low, high];
  return at;
}

/** Round numbers across a range, about as many as asked for. */
function ticks([low, high], count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= 0.75 * rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(+(i * step).toPrecision(12));
  return found;
}

function bottomAxis(x, [left, right], y, label, top) {
  const marks = ticks(x.domain, Math.max(2, (right - left) / 80)).map((value) => [
    top !== undefined && sv("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: y }),
    sv("text", { x: x(value), y: y + 16, "text-anchor": "middle" }, show(value)),
  ]);
  const words = label && sv("text", { class: "strong", x: (left + right) / 2, y: y + 34, "text-anchor": "middle" }, clip(label, Math.floor((right - left) / 7)));
  return sv("g", {}, marks, sv("line", { class: "axis", x1: left, x2: right, y1: y, y2: y }), words);
}

function leftAxis(y, [top, bottom], x, right, label) {
  const marks = ticks(y.domain, Math.max(2, (bottom - top) / 45)).map((value) => [
    sv("line", { class: "grid", x1: x, x2: right, y1: y(value), y2: y(value) }),
    sv("text", { x: x - 8, y: y(value) + 4, "text-anchor": "end" }, show(value)),
  ]);
  const words = label && sv("text", { class: "strong", x: 0, y: top - 12 }, clip(label, Math.floor(right / 7)));
  return sv("g", {}, marks, words);
}

/** A figure that is drawn at the width it has, and again when that changes. */
function figure(label, draw, caption) {
  const holder = el("div");
  const node = el("figure", {}, holder, caption && el("figcaption", {}, caption));
  let width = 0;
  const redraw = () => {
    const found = Math.floor(holder.clientWidth) || 600;
    if (found === width) return;
    width = found;
    const [height, ...parts] = draw(width);
    holder.replaceChildren(sv("svg", { role: "img", "aria-label": label, viewBox: `0 0 ${width} ${height}`, height }, parts));
  };
  new ResizeObserver(redraw).observe(holder);
  return node;
}

/** Points as shapes that do not need their colour: policies round, twins square, optima on a corner. */
function shape(kind, x, y, r, attributes = {}, ...children) {
  const own = { class: `fill-${kind}`, ...attributes };
  if (kind.startsWith("twin")) return sv("rect", { ...own, x: x - r * 0.9, y: y - r * 0.9, width: r * 1.8, height: r * 1.8 }, ...children);
  if (kind === "optimum") return sv("path", { ...own, d: `M${x} ${y - r * 1.4}l${r * 1.4} ${r * 1.4}l${-r * 1.4} ${r * 1.4}l${-r * 1.4} ${-r * 1.4}z` }, ...children);
  return sv("circle", { ...own, cx: x, cy: y, r }, ...children);
}
