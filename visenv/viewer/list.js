// Shows the table of episodes: columns with different values, one page at a time.

const PAGE = 50;

const COLUMNS = [
  { name: "outcome", title: "Outcome", cell: (place) => badge(textOf("outcome", place)) },
  { name: "reward", title: "Reward", digits: 3 },
  { name: "advantage", title: "Advantage", cell: (place) => { const given = numberOf("advantage", place); return given === null ? "–" : make("span", { class: sign(given) }, signed(given)); }, number: true },
  { name: "question", title: "Question", brief: true },
  { name: "answer", title: "Answer", brief: true },
  { name: "truth", title: "Truth", brief: true },
  { name: "kind", title: "Kind" },
  { name: "turns", title: "Turns", digits: 0 },
  { name: "tokens", title: "Tokens", digits: 0 },
  { name: "seconds", title: "Time", cell: (place) => (numberOf("seconds", place) === null ? "–" : seconds(numberOf("seconds", place))), number: true, hidden: true },
  { name: "group", title: "Group", cell: (place) => groupCell(place), number: true },
  { name: "saved_in", title: "Saved in" },
  { name: "env", title: "Environment" },
  { name: "tools", title: "Tools", cell: (place) => textOf("tools", place).join(", ") || "–", hidden: true },
  { name: "id", title: "Sample", brief: true, hidden: true },
  ...Object.keys(index.terms).map((name) => ({ name: `terms/${name}`, title: name, digits: 3, hidden: true })),
  ...Object.keys(index.metrics).map((name) => ({ name: `metrics/${name}`, title: name, digits: 3, hidden: true })),
];

function groupCell(place) {
  const members = groups.get(groupKey(place));
  const name = String(numberOf("group", place));
  return members.length > 1 ? make("a", { href: groupLink(groupKey(place)), title: "members side by side" }, `${name} · ${numberOf("member", place)}`) : name;
}

const valueOf = ({ name }, place) => (index.texts[name] ? index.texts[name].rows[place] : numbers(name)[place]);

/** Return whether all episodes have the same value in a column, which is then omitted. */
const constant = (() => {
  const known = new Map();
  return (column) => {
    if (!known.has(column.name)) {
      const first = index.count ? valueOf(column, 0) : null;
      known.set(column.name, EVERYONE.every((place) => valueOf(column, place) === first));
    }
    return known.get(column.name);
  };
})();

/** Return whether each file contains episodes of only one environment; the file name then suffices. */
function fileTellsEnv() {
  const together = new Set(EVERYONE.map((place) => `${index.texts.saved_in.rows[place]} ${index.texts.env.rows[place]}`));
  return together.size === valuesOf("saved_in").length;
}

function columnsShown() {
  if (state.columns) return COLUMNS.filter(({ name }) => state.columns.includes(name));
  const usual = COLUMNS.filter((column) => !column.hidden && !constant(column) && (column.name !== "group" || severalMembers.length) && (column.name !== "env" || !fileTellsEnv()));
  const named = usual.some(({ name }) => ["question", "answer", "truth"].includes(name));
  const sample = COLUMNS.filter((column) => column.name === "id" && !named && !constant(column));
  const telling = [...usual, ...sample];
  return telling.length ? telling : COLUMNS.filter(({ name }) => ["outcome", "reward", "question", "answer", "truth", "turns"].includes(name));
}

function cellOf(column, place) {
  const shape = { "data-column": column.name, "data-title": column.title };
  if (column.cell) return make("td", { ...shape, class: column.number ? "number" : "" }, column.cell(place));
  if (index.texts[column.name]) {
    const text = textOf(column.name, place) || "–";
    return column.brief ? make("td", shape, make("div", { class: "brief" }, text)) : make("td", shape, text);
  }
  const value = numbers(column.name)[place];
  const told = value === null || value === undefined ? (column.name === "reward" ? rewardText(textOf("outcome", place), null) : "–") : value.toFixed(column.digits);
  return make("td", { ...shape, class: "number" }, told);
}

// ------------------------------------------------------------------ drawing

let drawn = null;  // the link of the list as it was drawn last

function listEpisodes() {
  shown = fitting();
  const pages = Math.max(1, Math.ceil(shown.length / PAGE));
  state.page = Math.min(state.page, pages - 1);
  const columns = columnsShown();
  const rows = shown.slice(state.page * PAGE, (state.page + 1) * PAGE);
  byId("list").querySelector("thead").replaceChildren(make("tr", {}, ...columns.map(headCell)));
  byId("list").querySelector("tbody").replaceChildren(...rows.map((place) => episodeRow(place, columns)));
  byId("list").hidden = !rows.length;
  byId("none").hidden = rows.length > 0;
  const partial = !fieldOf("text") || textsAreThere() ? "" : textsFailed ? "; the texts of the turns cannot be read" : "; turns are still being loaded";
  byId("count").textContent = `${shown.length === index.count ? "" : `${shown.length} of `}${index.count} episodes${partial}`;
  options(byId("sort-by").querySelector("select"), [["", "as saved"], ...columns.flatMap(({ name, title }) => [[name, `${title} ↑`], [`-${name}`, `${title} ↓`]])], state.sort);
  showConstants();
  showPages(pages);
  drawn = listLink();
}

function headCell(column) {
  const now = state.sort === column.name ? "ascending" : state.sort === `-${column.name}` ? "descending" : "none";
  const press = button(column.title, () => sortBy(column), { title: "sort" });
  return make("th", { "aria-sort": now, class: column.number || column.digits !== undefined ? "number" : "" }, press);
}

/** Sort numbers from the largest, texts from the first; a third press resets the order. */
function sortBy({ name }) {
  const order = index.texts[name] ? [name, `-${name}`, ""] : [`-${name}`, name, ""];
  chooseOrder(order[(order.indexOf(state.sort) + 1) % 3]);
}

function chooseOrder(sort) {
  state.sort = sort;
  filterChanged();
}

function episodeRow(place, columns) {
  const row = make("tr", { class: "row", tabindex: 0, "data-place": place, role: "link" }, ...columns.map((column) => cellOf(column, place)));
  row.addEventListener("click", (event) => { if (!event.target.closest("a")) go(episodeLink(place)); });
  row.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target === row) go(episodeLink(place)); });
  return row;
}

function showConstants() {
  const same = COLUMNS.filter((column) => !column.hidden && column.name !== "group" && index.count > 1 && constant(column) && valueOf(column, 0) !== null);
  const told = same.map((column) => `${column.title.toLowerCase()} ${index.texts[column.name] ? textOf(column.name, 0) || "none" : number(numbers(column.name)[0])}`);
  byId("constants").textContent = told.length ? `Equal for all episodes: ${told.join(" · ")}` : "";
}

function showPages(pages) {
  const turn = (by) => () => { state.page += by; listEpisodes(); location.replace(listLink()); byId("top").scrollIntoView(); };
  const first = state.page * PAGE + 1, last = Math.min(shown.length, (state.page + 1) * PAGE);
  byId("pages").replaceChildren(...(pages < 2 ? [] : [
    button("←", turn(-1), { title: "previous page", ...(state.page ? {} : { disabled: "" }) }),
    make("span", {}, `${first}–${last} of ${shown.length}`),
    button("→", turn(1), { title: "next page", ...(state.page < pages - 1 ? {} : { disabled: "" }) }),
  ]));
}

function makeColumnsMenu() {
  const names = new Set(columnsShown().map(({ name }) => name));
  byId("columns").querySelector("div").replaceChildren(...COLUMNS.filter((column) => !constant(column) || names.has(column.name)).map((column) => {
    const box = make("input", { type: "checkbox", ...(names.has(column.name) ? { checked: "" } : {}) });
    box.addEventListener("change", () => {
      if (box.checked) names.add(column.name); else names.delete(column.name);
      state.columns = [...names];
      listEpisodes();
      location.replace(listLink());
    });
    return make("label", {}, box, column.title);
  }));
}

function makeList() {
  makeFilters();
  byId("sort-by").querySelector("select").addEventListener("change", (event) => chooseOrder(event.target.value));
  byId("columns").addEventListener("toggle", () => { if (byId("columns").open) makeColumnsMenu(); });
}
