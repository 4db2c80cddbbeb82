// What all pages have: sections, sliders, and tables whose headings sort them.

function put(section, ...parts) {
  const found = parts.flat(Infinity).filter(Boolean);
  byId(`${section}-body`).replaceChildren(...found);
  byId(section).hidden = !found.length;
}

/** What stands around the sections of every page. */
function frame(page) {
  byId("names").textContent = `aetdice report of ${page.names}`;
  byId("title").textContent = page.title;
  byId("footer").textContent = `Made ${page.made} by aetdice ${page.version}. This file holds all that it shows, and asks nothing of any network.`;
}

function badge(good, words) {
  byId("badge").className = `badge ${good ? "good" : "bad"}`;
  byId("badge").textContent = `${good ? "✓" : "!"} ${words}`;
}

function slider(id, name, count, moved) {
  const input = el("input", { type: "range", id, min: 0, max: count - 1, step: 1 });
  input.addEventListener("input", () => moved(Number(input.value)));
  return el("div", { class: "control" }, el("label", { for: id }, name), input, el("output", { for: id }));
}

/** Puts a slider where it says so many words. */
function slide(input, place, words) {
  input.value = place;
  input.setAttribute("aria-valuetext", words);
  input.nextSibling.textContent = words;
}

const scrolling = (label, table) => el("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" }, table);

/**
 * Lines of `{ class, head, cells }`, a cell with its `content` and the `value` or `words` that it is sorted by. A heading
 * sorts from the top, then from the bottom, then not at all.
 */
function sortable(label, corner, columns, lines, order, attributes = {}) {
  const body = el("tbody"), heads = columns.map(head);
  function head([name, words], index) {
    const button = el("button", { type: "button" }, words);
    button.addEventListener("click", () => {
      if (order.by === name && order.up) order.by = null;
      else [order.by, order.up] = [name, order.by === name];
      arrange();
    });
    return el("th", { scope: "col", class: lines.some(({ cells }) => cells[index].wordy) ? "wordy" : null, "data-name": name }, button);
  }
  function arrange() {
    const at = columns.findIndex(([name]) => name === order.by);
    body.replaceChildren(...(at < 0 ? lines : sorted(lines, at, order.up)).map((line) => el("tr", { class: line.class },
      el("th", { scope: "row" }, line.head), line.cells.map((cell) => el("td", { class: cell.class, title: cell.title }, cell.content)))));
    for (const each of heads) each.setAttribute("aria-sort", each.dataset.name !== order.by ? "none" : order.up ? "ascending" : "descending");
  }
  arrange();
  return scrolling(label, el("table", attributes, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, corner), heads)), body));
}

/** By their numbers, or by their words where a column has none; what has neither comes last. */
function sorted(lines, at, up) {
  const key = ({ cells }) => cells[at].value ?? null;
  const numeric = lines.some((line) => key(line) !== null);
  const words = ({ cells }) => (numeric ? "" : cells[at].words ?? "");
  return [...lines].sort((a, b) => (numeric && (key(a) === null) - (key(b) === null)) || (up ? 1 : -1) * (key(a) - key(b) || words(a).localeCompare(words(b))));
}
