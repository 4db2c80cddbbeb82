// The state of the page: which policy is shown, and how its table is sorted.

const page = JSON.parse(byId("data").textContent);
const state = { current: 0, order: { by: null, up: false } };
const find = (run, member) => page.policies.findIndex((each) => each.run === run && each.member === member);

function policyName(page, index) {
  const { run, member, objective } = page.policies[index];
  const places = page.runs[run].axes.filter(({ name }) => name !== "objective").map(({ name, labels, places }) => `${name} = ${labels[places[member]]}`);
  const own = places.filter((words) => !objective.name.includes(words)).join(", ");
  return [page.runs.length > 1 && page.runs[run].name, objective.name, own].filter(Boolean).join(", ");
}

/** The member beside this one along an axis; along the first one it is that selected for the objective. */
function moved(run, member, axis, place) {
  const { axes, selected } = page.runs[run];
  const fits = (index) => axes.every((each) => each.places[index] === (each === axis ? place : each.places[member]));
  if (axis === axes[0]) {
    const chosen = selected.find((index) => axis.places[index] === place);
    if (chosen !== undefined) return chosen;
  }
  return axis.places.findIndex((_, index) => fits(index));
}

/** Sliders: through the runs, and through what varied within the one that is shown. */
function stations() {
  const { run, member } = page.policies[state.current];
  const found = [];
  if (page.runs.length > 1) {
    const first = (place) => find(place, page.runs[place].selected[0]);
    found.push({ name: "run", labels: page.runs.map((each, i) => `${each.name}: ${page.policies[first(i)].objective.name}`), place: run, to: first });
  }
  for (const axis of page.runs[run].axes) {
    found.push({ name: axis.name, labels: axis.labels, place: axis.places[member], to: (place) => find(run, moved(run, member, axis, place)) });
  }
  return found;
}

function controls() {
  const found = stations(), nav = byId("controls");
  nav.hidden = !found.length;
  nav.setAttribute("aria-label", "Trained policies");
  const key = found.map(({ name, labels }) => name + labels.length).join();
  if (nav.dataset.key !== key) {
    nav.dataset.key = key;
    nav.replaceChildren(el("div", {}, found.map(({ name, labels }, i) => slider(`slider-${i}`, name, labels.length, (place) => present(stations()[i].to(place)))),
      el("p", { id: "selected", class: "note" })));
  }
  const { run, selected } = page.policies[state.current];
  const settings = page.policies.some((each) => each.run === run && !each.selected);
  byId("selected").textContent = !settings ? "" : selected ? "This is the setting that was selected." : "Another setting was selected.";
  found.forEach(({ labels, place }, i) => slide(byId(`slider-${i}`), place, labels[place]));
}

function present(index) {
  state.current = index;
  const policy = page.policies[index], run = page.runs[policy.run];
  controls();
  badge(policy.trusted, policy.trusted ? "Trusted" : "Not trusted");
  byId("answer").textContent = policy.answer;
  const [first] = stations();
  const stops = first ? first.labels.map((label, place) => ({ label, index: first.to(place), current: place === first.place })) : [];
  put("asked", asked(page, policy));
  put("attained", attained(page, policy, state.order));
  put("returns", returnsOf(page, policy, run));
  put("population", population(page, index, stops, first?.name));
  put("training", Object.keys(run.curves).length ? training(run, policy.member) : []);
  put("verdict", verdict(policy));
  put("provenance", provenanceOf(run));
}

frame(page);
present(find(0, page.runs[0].selected[0]));
