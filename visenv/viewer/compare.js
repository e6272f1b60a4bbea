// Compares two sets of episodes, of two runs or of one.

const chosen = { one: null, other: null };

/** Return the default sets: the same file of both runs; in one run, its first and its last evaluation. */
function defaultSets() {
  const sets = fileNames();
  if (data.runs.length > 1) {
    const [first, second] = data.runs.map((run) => `${run.name}: `);
    const own = sets.filter((name) => name.startsWith(first)).map((name) => name.slice(first.length));
    const both = own.filter((name) => sets.includes(second + name));
    const evaluated = both.filter((name) => name.startsWith("evaluation/"));
    const chosenFile = evaluated.find((name) => name.includes("after")) ?? evaluated.pop() ?? both.pop();
    if (chosenFile !== undefined) return [first + chosenFile, second + chosenFile];
    const ofRun = (prefix) => sets.find((name) => name.startsWith(prefix)) ?? sets[0];
    return [ofRun(first), ofRun(second)];
  }
  const evaluations = sets.filter((name) => name.startsWith("evaluation/"));
  const some = evaluations.length > 1 ? evaluations : sets;
  return [some.find((name) => name.includes("before")) ?? some[0], some.find((name) => name.includes("after")) ?? some[some.length - 1]];
}

function showCompare() {
  if (chosen.one === null) [chosen.one, chosen.other] = defaultSets();
  const sets = fileNames().map((name) => [name, name]);
  const choose = (side) => {
    const select = options(make("select", {}), sets, chosen[side]);
    select.addEventListener("change", () => { chosen[side] = select.value; showCompare(); });
    return make("label", {}, side === "one" ? "A " : "B ", select);
  };
  const one = placesIn(chosen.one), other = placesIn(chosen.other);
  const pairs = pairsOf(one, other);
  byId("compare").replaceChildren(make("div", { class: "bar-line" }, choose("one"), choose("other")),
    make("div", { class: "beside" }, make("div", { class: "panel" }, make("h2", {}, "Means"), make("div", { class: "wide" }, meansTable(one, other))), ...settingsPanel()),
    pairPanel(pairs));
}

function meansTable(one, other) {
  const names = ["reward", ...Object.keys(index.metrics).map((name) => `metrics/${name}`), ...Object.keys(index.terms).map((name) => `terms/${name}`), "turns", "tokens", "seconds"];
  const meanOf = (places, name) => {
    const values = countedValues(places, name);
    return values.length ? mean(values) : null;
  };
  const cells = (...texts) => texts.map((text) => make("td", { class: "number" }, text));
  const rows = names.map((name) => [name, meanOf(one, name), meanOf(other, name)]).filter(([, first, second]) => first !== null || second !== null);
  const told = (value) => (value === null ? "–" : number(value));
  const body = rows.map(([name, first, second]) => make("tr", {}, make("td", {}, name.replace(/^(metrics|terms)\//, (_, kind) => (kind === "terms" ? "term " : ""))), ...cells(told(first), told(second)),
    make("td", { class: "number" }, first === null || second === null ? "–" : signed(second - first))));
  const lost = [one, other].map((places) => places.filter(isAborted).length);
  const aborted = lost.some(Boolean) ? [make("tr", {}, make("td", {}, "aborted (count as 0)"), ...cells(...lost, ""))] : [];
  const count = make("tr", {}, make("td", {}, "episodes"), ...cells(one.length, other.length, ""));
  return make("table", { class: "means" }, make("thead", {}, make("tr", {}, make("th", {}, ""), ...["A", "B", "B − A"].map((title) => make("th", { class: "number" }, title)))), make("tbody", {}, count, ...aborted, ...body));
}

// ------------------------------------------------------------------ pairs

/**
 * Pair the episodes with the same environment, sample, seed and member; the largest differences come first.
 *
 * An aborted episode counts as 0, as in `visenv eval --compare`.
 */
function pairsOf(one, other) {
  const { rows } = index.texts.pair ?? { rows: [] };
  const known = new Map(other.map((place) => [rows[place], place]));
  const pairs = one.filter((place) => known.has(rows[place])).map((place) => ({ one: place, other: known.get(rows[place]) }));
  for (const pair of pairs) {
    const [first, second] = [pair.one, pair.other].map((place) => (isAborted(place) ? 0 : numberOf("reward", place)));
    pair.change = first === null || second === null ? null : second - first;
  }
  return pairs.sort((first, second) => Math.abs(second.change ?? 0) - Math.abs(first.change ?? 0));
}

function pairPanel(pairs) {
  if (!pairs.length) return make("p", { class: "empty" }, "The two files have no sample in common.");
  const count = (holds) => pairs.filter(({ change }) => change !== null && holds(change)).length;
  const [better, worse, equal] = [count((change) => change > 1e-9), count((change) => change < -1e-9), count((change) => Math.abs(change) <= 1e-9)];
  const unknown = pairs.length - better - worse - equal;
  const samples = new Set(pairs.map(({ one }) => textOf("pair", one).split("/")[0])).size;
  const columns = ["B − A", "A", "B", ...(tells("question") ? ["Question"] : []), "Truth", "Answer A", "Answer B"];
  const head = make("tr", {}, ...columns.map((title) => make("th", title === "B − A" ? { class: "number" } : {}, title)));
  const list = make("table", { id: "pair-list", class: "list" }, make("thead", {}, head), make("tbody", {}, ...pairs.slice(0, PAGE).map(pairRow)));
  const said = `${counted(pairs.length, "pair")} of episodes (${counted(samples, "sample")}): ${better} better, ${worse} worse, ${equal} equal${unknown ? `, ${unknown} without a difference of rewards` : ""}${pairs.length > PAGE ? `; the ${PAGE} largest differences` : ""}`;
  return make("div", { class: "panel" }, make("h2", {}, "Pairs ", make("small", {}, said)), list);
}

function pairRow({ one, other, change }) {
  const cell = (title, content, kind = "") => make("td", { "data-title": title, "data-column": title.toLowerCase().replace(" ", "-"), class: kind }, content);
  const ended = (place) => make("span", {}, badge(textOf("outcome", place)), ` ${rewardText(textOf("outcome", place), numberOf("reward", place))}`);
  const brief = (text) => make("div", { class: "brief" }, text || "–");
  const row = make("tr", { class: "row", tabindex: 0, role: "link" },
    cell("B − A", change === null ? "–" : make("span", { class: sign(change) }, signed(change)), "number"), cell("A", ended(one)), cell("B", ended(other)),
    ...(tells("question") ? [cell("Question", brief(textOf("question", one)))] : []), cell("Truth", brief(textOf("truth", one))), cell("Answer A", brief(textOf("answer", one))), cell("Answer B", brief(textOf("answer", other))));
  const open = () => go(`#/pair/${[one, other].map((place) => `${encodeURIComponent(textOf("saved_in", place))}/${numberOf("line", place)}`).join("/")}`);
  row.addEventListener("click", open);
  row.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
  return row;
}

// ------------------------------------------------------------------ settings

function settingsPanel() {
  if (data.runs.length < 2) return [];
  const [one, other] = data.runs.map((run) => ({ ...run.facts.settings, ...run.facts.chief }));
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((name) => one[name] !== other[name]);
  const rows = names.map((name) => make("tr", {}, make("td", {}, ...breakable(name)), make("td", {}, one[name] ?? "–"), make("td", {}, other[name] ?? "–")));
  const head = make("tr", {}, ...["", ...data.runs.map((run) => run.name)].map((title) => make("th", {}, title)));
  const table = make("table", { id: "settings" }, make("thead", {}, head), make("tbody", {}, ...rows));
  return [make("div", { class: "panel" }, make("h2", {}, "Settings that differ"), rows.length ? make("div", { class: "wide" }, table) : make("p", { class: "soft" }, "None."))];
}
