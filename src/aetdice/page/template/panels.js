// The sections, each filled from one policy.

const legend = (kinds) => el("ul", { class: "legend" }, kinds.map(([kind, words]) => el("li", {}, el("span", { class: `mark ${kind}`, "aria-hidden": "true" }), words)));
const facts = (pairs) => el("dl", {}, pairs.map(([name, words]) => [el("dt", {}, name), el("dd", {}, words)]));

function asked(page, policy) {
  const { name, formula: symbols, words, utility, aggregation, fair } = policy.objective;
  const returns = page.objectives.map((each, i) => `R${"₀₁₂₃₄₅₆₇₈₉"[i + 1] ?? i + 1} ${each}`).join(", ");
  return el("div", { class: "pair" },
    el("div", {}, el("p", { class: "formula" }, "J = ", formula(symbols)), el("p", {}, el("strong", {}, `${name}. `), words)),
    facts([["F, within an episode", utility], ["G, across episodes", aggregation], ["returns R of an episode", returns], ...(fair ? [["u, the α-fair function", formula(fair)]] : [])]));
}

function attained(page, policy, order) {
  const rows = policy.rows.filter(({ scores }) => scores.trained);
  const picture = figure(`J of ${rows.map(({ label, scores }) => `${label} ${scores.trained.text}`).join("; ")}`,
    (width) => intervals(rows.map(({ kind, label, scores }) => ({ kind, label, score: scores.trained })), width));
  return [el("h3", {}, `J under ${policy.objective.name}`), picture, el("div", { class: "block" }, scores(page, policy, order))];
}

/** The table of scores; `order` outlives the policy that is shown. */
function scores(page, policy, order) {
  const levels = [...new Set(policy.rows.flatMap(({ scores }) => Object.values(scores).map(({ level }) => level)).filter(Boolean))];
  const caption = `In the data's own reward units, larger is better. In brackets ${levels.map(percent).join(" and ")} intervals. A heading sorts.`;
  const lines = policy.rows.map(({ kind, label, note, scores }) => ({
    class: kind,
    head: [el("span", { class: `mark ${kind}`, "aria-hidden": "true" }), label, note && el("span", { class: "table-note" }, note)],
    cells: page.columns.map(([name]) => ({ value: scores[name]?.value, content: scores[name]?.text ?? "–" })),
  }));
  return [el("p", { class: "note" }, caption), sortable("Scores", "What", page.columns, lines, order, { id: "scores" })];
}

function returnsOf(page, policy, run) {
  const samples = Object.fromEntries(Object.entries(policy.samples).map(([kind, place]) => [kind, page.samples[place]]));
  const kinds = Object.entries(KINDS).filter(([kind]) => samples[kind]);
  const names = page.objectives;
  const draw = names.length === 2 ? scatter : parallel;
  const episodes = kinds.map(([kind, words]) => `${words} ${samples[kind].episodes.toLocaleString("en")}`).join(", ");
  const origin = run.sampled ? "sampled in the environment" : samples.policy ? "of the policy, rolled out in a model of the log" : "of the log; what the policy brings is not known well enough to be drawn";
  const captions = { 1: "", 2: "The area of a mark is its share of the episodes; crosses are means." };
  const joint = names.length > 1 && el("div", {}, el("h3", {}, "Episodes"),
    figure(`Returns of episodes: ${kinds.map(([kind, words]) => `mean of the ${words} ${samples[kind].mean.map(show).join(", ")}`).join("; ")}`,
      (width) => draw(samples, names, width), captions[names.length] ?? "A line is an episode, a thick one the mean."));
  const spread = el("div", {}, names.map((name, i) => el("div", {}, el("h3", {}, `Return of ${name}`),
    figure(`Quantiles of ${name}: ${kinds.map(([kind, words]) => `${words} ${samples[kind].quantiles.map((q) => show(q[i])).join(", ")}`).join("; ")}`, (width) => strips(samples, i, width)))),
    el("p", { class: "note" }, "Line: 5 to 95 % of the episodes. Bar: the middle half. Tick: the median. Triangle: the mean of the worst tenth (CVaR 10 %)."));
  return [el("p", { class: "note" }, `Episodes ${origin}: ${episodes}.`), legend(kinds), el("div", { class: "pair" }, joint, spread),
    el("div", { class: "pair block" }, risks(names, samples, kinds), outcomes(names, samples))];
}

function risks(names, samples, kinds) {
  const line = (label, value) => el("tr", {}, el("th", { scope: "row" }, label), kinds.map(([kind]) => el("td", {}, value(samples[kind]))));
  const fair = kinds.some(([kind]) => samples[kind].fairness.within);
  const share = (where, what) => (sample) => (sample.fairness[where] ? (what === "share" ? percent(sample.fairness[where].share) : show(sample.fairness[where].gini)) : "–");
  const rows = [
    names.map((name, i) => [line(`Mean of ${name}`, (sample) => show(sample.mean[i])), line(`Worst tenth of ${name}`, (sample) => show(sample.tail[i]))]),
    fair && [["within", "within an episode"], ["average", "of the averages"]].map(([where, words]) => [line(`Smallest share ${words}`, share(where, "share")), line(`Gini ${words}`, share(where, "gini"))]),
  ];
  const note = fair ? `An equal share is ${percent(1 / names.length)}, and Gini 0. They compare objectives, so they mean something where these have one unit.` : names.length > 1 ? "Shares and Gini are left out: returns below 0 have none." : "";
  return el("div", {}, el("h3", {}, "Risk and fairness"), scrolling("Risk and fairness", el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "What"), kinds.map(([, words]) => el("th", { scope: "col" }, words)))), el("tbody", {}, rows))), el("p", { class: "note" }, note));
}

function outcomes(names, samples) {
  const own = samples.policy ? "policy" : "data", found = samples[own].outcomes;
  const head = el("h3", {}, `Commonest outcomes of the ${KINDS[own]}`);
  if (!found.length) return el("div", {}, head, el("p", { class: "note" }, "Hardly any outcome came twice: returns are continuous."));
  const bar = (share) => sv("svg", { height: 8, viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" }, sv("rect", { class: `fill-${own}`, width: Math.max(0.6, 100 * share), height: 8, rx: 1 }));
  return el("div", {}, head, el("ul", { class: "outcomes" }, found.map(({ returns, share }) => el("li", {},
    `${percent(share)}: ${names.map((name, i) => `${name} ${show(returns[i])}`).join(", ")}`, bar(share)))));
}

function population(page, current, stops, axis) {
  const score = (stop, column) => page.policies[stop.index].rows.find(({ kind }) => kind === "policy" || kind === "model")?.scores[column];
  const charts = page.columns.map(([column, words], i) => {
    const known = stops.map((stop) => ({ ...stop, score: score(stop, column) })).filter((stop) => stop.score);
    // Of a sampled policy the trained objective is one of the others, or differs from stop to stop.
    if (known.length < 2 || (i === 0 && known.every((stop) => score(stop, page.columns[1][0])))) return null;
    return el("div", {}, el("h3", {}, `${words} along ${axis}`), figure(`${words}: ${known.map((stop) => `${stop.label} ${show(stop.score.value)}`).join(", ")}`, (width) => along(known, width)));
  }).filter(Boolean);
  return [
    charts.length && el("p", { class: "note" }, `Every policy along ${axis}. The filled one is shown on this page; a slider above goes to another.`),
    charts.length && el("div", { class: "small" }, charts),
    page.front && el("div", { class: charts.length ? "block" : "" }, fronts(page, current)),
  ];
}

function fronts(page, current) {
  const names = page.objectives, on = new Set(page.front.on);
  const points = page.policies.map((policy, index) => ({ kind: "policy", mean: policy.mean, on: on.has(index), current: index === current, label: policyName(page, index) })).filter(({ mean }) => mean);
  const data = page.samples[page.policies[current].samples.data];
  points.push({ kind: "data", mean: data.mean, on: false, current: false, label: "logged data" });
  const pairs = names.flatMap((_, i) => names.slice(i + 1).map((_, j) => [i, i + 1 + j])).slice(0, 6);
  const volume = page.front.hypervolume && ` Hypervolume of the policies above the worst logged return (${page.front.reference.join(", ")}): ${page.front.hypervolume}.`;
  return el("div", { class: names.length > 2 ? "" : "pair" }, el("div", {}, el("h3", {}, "Expected returns, and the Pareto front"),
    el("p", { class: "note" }, `${on.size} of ${points.length - 1} policies are dominated by no other.`, volume, " Expected returns tell all about linear and SER objectives; what ESR and BSR are after lies within episodes."),
    legend([["policy", "policy shown"], ["data", "logged data"]])),
    el("div", { class: names.length > 2 ? "small" : "" }, pairs.map((pair) => figure(`Expected returns of ${names[pair[0]]} and ${names[pair[1]]}`, (width) => front(points, names, pair, width)))));
}

function training(run, member) {
  const stages = { values: "weights", cloning: "policy" };
  return el("div", { class: "small" }, Object.entries(run.curves).flatMap(([stage, curves]) => Object.entries(curves).map(([name, found]) =>
    el("div", {}, el("h3", {}, name), figure(`${name}, at last ${show(found.values[member].at(-1))}`, (width) => curve(found, member, width), `steps of the ${stages[stage] ?? stage} stage`)))));
}

function verdict(policy) {
  const said = policy.findings.map(({ words, alarm }) => el("li", { class: alarm ? "alarm" : "" }, alarm && el("strong", {}, "Note: "), words));
  return el("div", { class: "pair" }, el("ul", { class: "findings" }, said),
    el("div", {}, el("h3", {}, "What to do"), el("ol", { class: "advice" }, policy.advice.map((words) => el("li", {}, words)))));
}

function provenanceOf(run) {
  const { facts: known, command } = run.provenance;
  return [facts(known), command && el("div", { class: "block" }, el("h3", {}, "To train it again"), el("pre", {}, command))];
}
