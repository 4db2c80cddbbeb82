// A study: each table with an explorer of its rows, then what it has beside tables.

const page = JSON.parse(byId("data").textContent);
const TRAINED = "Shaded: trained for this column. In brackets: the paper's number. A heading sorts.";

function sheet({ title, headings, lines, remarks }, attributes, of = "") {
  const columns = headings.slice(1).map((words, i) => [String(i), words]);
  const shown = lines.map(({ cells: [name, ...cells], faint }) => ({
    class: faint ? "faint-line" : "",
    head: name.text,
    cells: cells.map(({ text, value, best, own, aside }, i) => {
      const wordy = text.length > 40;
      const content = el("span", {}, text, aside && el("span", { class: "aside" }, ` (${aside})`));
      return { value, content, words: text, wordy, title: own && "trained for this column", class: [best && "best", own && "own", wordy && "wordy"].filter(Boolean).join(" ") || null };
    }),
  }));
  const said = remarks.map(({ words, tone }) => el("li", { class: tone }, words));
  return el("div", { class: "block" }, el("h3", {}, title), sortable(of + title, headings[0] || "What", columns, shown, { by: null, up: false }, attributes),
    said.length > 0 && el("ul", { class: "remarks" }, said));
}

const folded = (words, ...children) => el("details", { class: "block" }, el("summary", {}, words), children);

/** Which row and setting of a table is looked at. */
function explorer(table, place) {
  const state = { group: 0, stop: 0, setting: 0 };
  const body = el("div", { class: "block" }), bar = el("div", { class: "controls" });
  const said = el("p", { class: "looked", "aria-live": "polite" });
  const group = () => table.groups[state.group];
  const row = () => table.rows[group().rows[state.stop]];
  const settings = () => row().settings;

  function to(change) {
    Object.assign(state, change);
    if (!("setting" in change)) state.setting = row().shown;
    present();
  }
  function controls() {
    const key = [state.group, settings().length].join();
    if (bar.dataset.key !== key) {
      bar.dataset.key = key;
      const focused = document.activeElement?.id;
      const choice = el("select", { id: `${place}-method` }, table.groups.map(({ name }, i) => el("option", { value: i }, name)));
      choice.addEventListener("change", () => to({ group: Number(choice.value), stop: 0 }));
      bar.replaceChildren(el("div", { class: "control" }, el("label", { for: `${place}-method` }, "method"), choice),
        group().rows.length > 1 ? slider(`${place}-stop`, group().parameter, group().rows.length, (stop) => to({ stop })) : "",
        settings().length > 1 ? slider(`${place}-setting`, "setting", settings().length, (setting) => to({ setting })) : "");
      if (focused) bar.querySelector(`#${focused}`)?.focus();
    }
    const inside = (name) => bar.querySelector(`#${place}-${name}`);
    inside("method").value = state.group;
    if (inside("stop")) slide(inside("stop"), state.stop, group().labels[state.stop]);
    if (inside("setting")) slide(inside("setting"), state.setting, settings()[state.setting].label);
  }
  function present() {
    controls();
    said.replaceChildren(...lookedAt(row(), row().settings[state.setting]));
    body.replaceChildren(...pictured(table, group(), row(), state).flat(Infinity).filter(Boolean));
  }
  to({});
  return el("div", { class: "block explorer" }, el("h3", {}, "Look at one policy"), bar, said, body);
}

function lookedAt(row, { label, note, gap }) {
  const words = [row.name, label && `with ${label}`, note].filter(Boolean).join(", ");
  return [el("strong", {}, words), gap && `. ${gap} of the way from its cloning twin to the best known`, "."].filter(Boolean);
}

function pictured(table, group, row, state) {
  const setting = row.settings[state.setting], samples = setting.samples;
  return [
    setting.rows.length > 1 && [el("h3", {}, `J under what it is trained for, ${row.objective}`), figure(setting.rows.map(({ label, score }) => `${label} ${score.text}`).join("; "), (width) => intervals(setting.rows, width))],
    ranges(table, group, row, state),
    samples.policy !== undefined ? el("div", { class: "block" }, returnsOf({ objectives: table.objectives, samples: page.samples }, setting, { sampled: true })) : expected(table, row, setting),
    Object.entries(setting.shares).map(([name, found]) => proportions(name, found, row)),
  ];
}

/** Every column along the swept parameter, or along the settings where that is all that varied. */
function ranges(table, group, row, state) {
  const swept = group.rows.length > 1;
  const stops = swept
    ? group.rows.map((index, i) => [group.labels[i], table.rows[index], i === state.stop ? state.setting : table.rows[index].shown, i === state.stop])
    : row.settings.map(({ label }, i) => [label, row, i, i === state.setting]);
  if (stops.length < 2) return null;
  const axis = swept ? group.parameter : "the settings";
  const charts = table.columns.map((column) => {
    const known = stops.map(([label, { settings, best }, at, current]) => ({ label, current, score: settings[at].scores[column], reference: best?.[column] })).filter(({ score }) => score);
    return known.length > 1 && el("div", {}, el("h3", {}, `${column} along ${axis}`), figure(`${column}: ${known.map(({ label, score }) => `${label} ${show(score.value)}`).join(", ")}`, (width) => along(known, width)));
  });
  return el("div", { class: "block" }, el("div", { class: "small" }, charts), el("p", { class: "note" }, "The filled mark is the policy looked at", row.best && "; diamonds are the best known for each objective", ". Intervals are at 95 %."));
}

/** Expected returns of all rows, where single episodes are not kept. */
function expected(table, row, setting) {
  const points = table.rows.map((each) => ({ kind: "policy", mean: each === row ? setting.mean : each.settings[each.shown].mean, on: false, current: each === row, label: each.name })).filter(({ mean }) => mean);
  for (const { name, mean } of table.references) if (mean) points.push({ kind: name === "data" ? "data" : "optimum", mean, on: false, current: false, label: name });
  const names = table.objectives;
  if (points.length < 2 || names.length < 2) return null;
  const pairs = names.flatMap((_, i) => names.slice(i + 1).map((_, j) => [i, i + 1 + j])).slice(0, 6);
  return el("div", { class: "block" }, el("h3", {}, "Expected returns"), el("p", { class: "note" }, "The filled mark is the policy looked at, circles are the other rows, diamonds the best known."),
    el("div", { class: "small wide" }, pairs.map((pair) => figure(`Expected returns of ${names[pair[0]]} and ${names[pair[1]]}`, (width) => front(points, names, pair, width)))));
}

function proportions(name, found, row) {
  const best = row.optimum_shares[name];
  const series = [{ kind: "policy", label: row.name, found }, ...(best ? [{ kind: "optimum", label: row.optimum, found: best }] : [])];
  return el("div", { class: "block" }, el("h3", {}, name), legend(series.map(({ kind, label }) => [kind, label])),
    figure(`${name}: ${Object.entries(found).map(([what, share]) => `${what} ${percent(share)}`).join(", ")}`, (width) => shares(Object.keys(found), series, width)));
}

function tableOf(table, place) {
  const [first, ...others] = table.sheets, of = `${table.title}: `;
  const more = others.filter(({ title }) => !title.endsWith("every setting"));
  return [
    facts(table.about),
    first && sheet(first, { id: `${place}-sheet` }, of),
    table.rows.length > 0 && el("p", { class: "note" }, TRAINED),
    table.rows.length > 0 && explorer(table, place),
    more.length > 0 && folded("More of this table: gap closed, returns, behaviours", more.map((each) => sheet(each, {}, of))),
    others.length > more.length && folded("Every setting that was tried", others.filter((each) => !more.includes(each)).map((each) => sheet(each, {}, of))),
  ];
}

const pictures = () => page.figures.map(({ name, data }) => data === null ? el("p", { class: "note" }, `${name} lies in the folder: it would make this page too large.`) : el("figure", { class: "picture" }, el("img", { src: data, alt: `${name}: what it shows stands in it, and its data beside it in the folder` }), el("figcaption", {}, name)));

function contents() {
  const nav = byId("controls");
  nav.setAttribute("aria-label", "Contents");
  nav.hidden = false;
  nav.replaceChildren(el("div", { class: "contents" }, [...document.querySelectorAll("main > section")].filter(({ hidden }) => !hidden).map((section) => el("a", { href: `#${section.id}` }, section.querySelector("h2").textContent))));
}

frame(page);
badge(page.complete, page.complete ? "Complete" : "Unfinished");
byId("answer").textContent = page.answer;
put("asked", el("p", {}, page.asks), facts(page.about));
page.tables.forEach((table, i) => put(`table-${i}`, tableOf(table, `table-${i}`)));
put("more", page.sheets.map((each) => sheet(each)), page.notes.map((words) => el("p", { class: "note" }, words)));
put("figures", pictures());
put("provenance", facts(page.shared), sheet(page.provenance), page.command && el("div", { class: "block" }, el("h3", {}, "To make it again"), el("pre", {}, page.command)));
contents();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
