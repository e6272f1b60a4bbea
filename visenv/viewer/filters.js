// Selects and sorts the episodes. The link contains the state.

const SELECTS = [["outcome", "Outcome"], ["kind", "Kind"], ["tool", "Tool"], ["event", "Event"], ["env", "Environment"], ["saved_in", "Saved in"]];
const LISTS = { tool: "tools", event: "events" };  // columns with several names for each episode
const filters = byId("filters");
let shown = EVERYONE;

function makeFilters() {
  const search = make("input", { name: "text", type: "search", placeholder: "Search questions, answers and turns ( / )", "aria-label": "Text" });
  const selects = SELECTS.map(([name, title]) => {
    const column = LISTS[name] ?? name;
    const values = [...new Set(valuesOf(column).flat())].filter((value) => value !== "").sort();
    const constant = valuesOf(column).length < 2;
    const select = options(make("select", { name }), [["", "all"], ...values.map((value) => [value, value])]);
    return make("label", constant ? { hidden: "" } : {}, title, select);
  });
  const measured = [["reward", "reward"], ...(isKnown("advantage") ? [["advantage", "advantage"]] : []), ...Object.keys(index.terms).map((name) => [`terms/${name}`, `term ${name}`]),
    ...Object.keys(index.metrics).map((name) => [`metrics/${name}`, name]), ["turns", "turns"], ...(isKnown("tokens") ? [["tokens", "tokens"]] : []), ...(isKnown("seconds") ? [["seconds", "seconds"]] : [])];
  const range = make("label", { class: "range" }, options(make("select", { name: "measure", "aria-label": "Number" }), measured), make("input", { name: "low", type: "number", step: "any", placeholder: "from", "aria-label": "at least" }), make("input", { name: "high", type: "number", step: "any", placeholder: "to", "aria-label": "at most" }));
  const unfold = button("Filters", () => unfold.setAttribute("aria-expanded", String(filters.classList.toggle("open"))), { class: "unfold", "aria-expanded": "false" });
  filters.append(search, unfold, ...selects, range, make("button", { type: "reset" }, "Clear"));
  filters.addEventListener("input", filterChanged);
  filters.addEventListener("reset", () => setTimeout(filterChanged));  // the fields are cleared after the event
  filters.addEventListener("submit", (event) => event.preventDefault());
}

const isKnown = (name) => (index.numbers[name] ?? []).some((value) => value !== null);

function filterChanged() {
  state.page = 0;
  listEpisodes();
  location.replace(listLink());
}

const fieldOf = (name) => filters.elements[name].value;

/** Return the indices of the matching episodes, in the selected order. */
function fitting() {
  let places = EVERYONE;
  for (const [name] of SELECTS) if (fieldOf(name)) places = withText(places, LISTS[name] ?? name, fieldOf(name));
  places = withNumber(places, numbers(fieldOf("measure")), parseFloat(fieldOf("low")), parseFloat(fieldOf("high")));
  places = withWords(places, fieldOf("text").toLowerCase());
  return sorted(places);
}

function withText(places, name, wanted) {
  const fits = valuesOf(name).map((value) => (Array.isArray(value) ? value.includes(wanted) : value === wanted));
  const { rows } = index.texts[name];
  return places.filter((place) => fits[rows[place]]);
}

function withNumber(places, column, low, high) {
  if (!column || (Number.isNaN(low) && Number.isNaN(high))) return places;  // a link may name anything
  return places.filter((place) => column[place] !== null && !(column[place] < low) && !(column[place] > high));
}

/** Search the cells of the table until the texts of the turns are loaded. */
function withWords(places, words) {
  if (!words) return places;
  if (!textsAreThere() && !textsFailed) loadTexts(listEpisodes);
  if (textsAreThere()) return places.filter((place) => searched[place].includes(words));
  const columns = ["id", "question", "answer", "truth"].map((name) => ({ fits: valuesOf(name).map((value) => value.toLowerCase().includes(words)), rows: index.texts[name].rows }));
  return places.filter((place) => (place < searched.length ? searched[place].includes(words) : columns.some(({ fits, rows }) => fits[rows[place]])));
}

function sorted(places) {
  const name = state.sort.replace(/^-/, ""), down = state.sort.startsWith("-");
  if (!name) return places;
  const keys = index.texts[name]?.rows ?? numbers(name);  // the texts of a column are in order
  if (!keys) return places;
  const known = places.filter((place) => keys[place] !== null), unknown = places.filter((place) => keys[place] === null);
  const order = known.slice().sort((one, other) => (down ? keys[other] - keys[one] : keys[one] - keys[other]) || one - other);
  return [...order, ...unknown];
}

// ------------------------------------------------------------------ the link

const state = { sort: "", page: 0, columns: null };

function listLink() {
  const told = new URLSearchParams();
  for (const field of filters.elements) if (field.name && field.value && !(field.name === "measure" && !fieldOf("low") && !fieldOf("high"))) told.set(field.name, field.value);
  if (state.sort) told.set("sort", state.sort);
  if (state.page) told.set("page", state.page + 1);
  if (state.columns) told.set("columns", state.columns.join(","));
  return `#/episodes${told.size ? `?${told}` : ""}`;
}

function readLink(query) {
  const told = new URLSearchParams(query);
  for (const field of filters.elements) if (field.name) field.value = told.get(field.name) ?? (field.name === "measure" ? "reward" : "");
  state.sort = told.get("sort") ?? "";
  state.page = Math.max(0, (parseInt(told.get("page"), 10) || 1) - 1);
  state.columns = told.get("columns")?.split(",") ?? null;
}
