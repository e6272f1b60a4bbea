// Shows the facts of a run and its results.

function showProblems() {
  byId("problems").hidden = !data.problems.length;
  byId("problems").querySelector("ul").append(...data.problems.map((problem) => make("li", {}, problem)));
}

function showFacts() {
  byId("facts").append(...data.runs.map((run) => {
    const chief = Object.entries(factsOf(run));
    const settings = Object.entries(run.facts.settings);
    const list = make("dl", {}, ...chief.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
    const fold = make("details", {}, make("summary", {}, `${settings.length} settings`), factTable("", Object.fromEntries(settings)));
    return make("div", { class: "panel run" }, make("h2", {}, run.name), list, ...(settings.length ? [fold] : []));
  }));
}

/** Return the facts of a run: counts come before settings. */
function factsOf(run) {
  const first = data.runs.slice(0, data.runs.indexOf(run)).reduce((sum, each) => sum + each.episodes, 0);
  const places = EVERYONE.slice(first, first + run.episodes);
  const together = new Set(places.map(groupKey)).size;
  const counted = {};
  if (run.metrics.length) counted.steps = String(run.metrics.length);
  if (run.episodes) counted["episodes saved"] = `${run.episodes}${together < run.episodes ? ` in ${together} groups` : ""}`;
  const spent = Object.values(run.seconds).filter((value) => typeof value === "number");
  if (spent.length) counted["training time"] = seconds(spent.reduce((sum, value) => sum + value, 0));
  const chief = { ...run.facts.chief };
  if (!chief.env && places.length) chief.env = [...new Set(places.map((place) => textOf("env", place)))].join(", ");
  return { ...counted, ...chief };
}

/** List the saved files with their mean results and links to their episodes. */
function showSaved() {
  const sets = fileNames();
  if (!sets.length) return;
  const names = [...Object.keys(index.terms).map((name) => [`terms/${name}`, name])];
  const known = ["turns", "tokens"].filter((name) => index.numbers[name].some((value) => value !== null));
  const head = ["Saved in", "Episodes", "Reward", "Right", ...names.map(([, title]) => title), ...known.map((name) => name[0].toUpperCase() + name.slice(1))];
  const rows = sets.map((savedIn) => {
    const places = placesIn(savedIn);
    const average = (name) => {
      const values = countedValues(places, name);
      return values.length ? number(mean(values)) : "–";
    };
    const outcomes = places.map((place) => textOf("outcome", place));
    const right = outcomes.some((each) => ["right", "wrong"].includes(each)) ? `${(100 * outcomes.filter((each) => each === "right").length / outcomes.length).toFixed(0)} %` : "–";
    const lost = places.filter(isAborted).length;
    const cells = [lost ? `${places.length} (${lost} aborted)` : String(places.length), average("reward"), right, ...names.map(([name]) => average(name)), ...known.map(average)];
    return make("tr", {}, make("td", {}, make("a", { href: `#/episodes?${new URLSearchParams({ saved_in: savedIn })}` }, savedIn)), ...cells.map((text) => make("td", { class: "number" }, text)));
  });
  const table = make("table", { id: "saved" }, make("thead", {}, make("tr", {}, ...head.map((title, place) => make("th", place ? { class: "number" } : {}, title)))), make("tbody", {}, ...rows));
  byId("overview").append(make("div", { class: "panel" }, make("h2", {}, "Saved episodes ", make("small", {}, "means; terms are not weighted; an aborted episode counts as 0")), make("div", { class: "wide" }, table)));
}

function showResults() {
  const results = data.runs.flatMap((run) => run.results.map((row) => (data.runs.length > 1 ? { run: run.name, ...row } : row)));
  if (!results.length) return;
  byId("results").hidden = false;
  const columns = [...new Set(results.flatMap(Object.keys))].map((name) => resultColumn(name, results));
  const table = byId("results").querySelector("table");
  table.append(make("thead", {}, make("tr", {}, ...columns.map(({ name, text }) => make("th", text ? {} : { class: "number" }, name)))));
  table.append(make("tbody", {}, ...results.map((row) => make("tr", {}, ...columns.map((column) => resultCell(row[column.name], column))))));
}

/** Return how to format a column: a count has only whole numbers; a share is between 0 and 1 and gets a bar. */
function resultColumn(name, results) {
  const values = results.map((row) => middle(row[name])).filter((value) => typeof value === "number");
  const count = values.every(Number.isInteger) && !results.some((row) => Array.isArray(row[name]));
  return { name, count, text: !values.length, share: !count && values.every((value) => value >= 0 && value <= 1) };
}

/** Return the value of a result, which is a plain number or a mean with its interval. */
const middle = (value) => (Array.isArray(value) ? value[0] : value);

function resultCell(value, { count, share }) {
  if (typeof value === "string") return make("td", {}, value);
  if (typeof middle(value) !== "number") return make("td", { class: "number" }, "–");
  const shown = count ? String(value) : middle(value).toFixed(3);
  const bounds = Array.isArray(value) && typeof value[1] === "number" && typeof value[2] === "number" ? ` [${value[1].toFixed(3)}, ${value[2].toFixed(3)}]` : "";
  const cell = make("td", { class: "number" }, shown + bounds);
  if (share) cell.append(make("span", { class: "bar" }, make("i", { style: `width: ${100 * middle(value)}%` })));
  return cell;
}

function factTable(title, facts) {
  const rows = Object.entries(facts).filter(([, value]) => value !== "" && !(Array.isArray(value) && !value.length)).map(([name, value]) => make("tr", {}, make("td", {}, ...breakable(name)), make("td", {}, make("div", {}, factValue(value)))));
  return make("table", { class: "facts" }, ...(title ? [make("caption", {}, title)] : []), make("tbody", {}, ...rows));
}

/** Format lists of objects, such as the signs of a scene, with one object per line. */
function factValue(value) {
  if (value === null) return number(null);
  const nested = Array.isArray(value) && value.some((each) => each !== null && typeof each === "object" && !Array.isArray(each));
  if (!nested) return Array.isArray(value) ? value.map(inWords).join(", ") : inWords(value);
  return make("ul", {}, ...value.map((each) => make("li", {}, inWords(each))));
}

/** Return a value as text: objects as name: value, lists in brackets. */
function inWords(value) {
  if (value === null) return "none";
  if (Array.isArray(value)) return `[${value.map(inWords).join(", ")}]`;
  if (typeof value === "object") return Object.entries(value).map(([name, each]) => `${name}: ${inWords(each)}`).join(", ");
  return typeof value === "number" ? number(value) : String(value);
}
