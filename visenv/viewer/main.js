// Switches between the views, and handles the links to them.

const TABS = [
  ["overview", "Overview", ""],
  ["episodes", "Episodes", index.count],
  ["groups", "Groups", severalMembers.length],
  ["compare", "Compare", ""],
].filter(([name]) => ({ overview: true, episodes: index.count > 0, groups: severalMembers.length > 0, compare: data.runs.length > 1 || valuesOf("saved_in").length > 1 })[name]);

let filled = new Set();

function go(hash) {
  location.hash = hash;
}

function show(name, draw_) {
  for (const view of document.querySelectorAll(".view")) view.hidden = view.id !== name;
  if (draw_) draw_();
}

/** Draw a view once; the controls of the view redraw it. */
function once(name, draw_) {
  show(name, filled.has(name) ? null : draw_);
  filled.add(name);
}

/** Start with the overview if the run has curves, otherwise with its episodes. */
const first = () => (data.runs.some((run) => run.metrics.length || run.results.length) || !index.count ? "overview" : "episodes");

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = (path || first()).split("/").map(decoded);
  const detail = byId("detail");
  if (["episode", "group", "pair"].includes(name)) {
    detail.dataset.route = location.hash;
    show("detail");
    openDetail(name, rest).catch((error) => detail.replaceChildren(make("p", { class: "empty" }, error.message)));
    scrollTo(0, 0);
  } else if (name === "episodes" && index.count) {
    show("episodes");
    if (location.hash !== drawn) { readLink(query); listEpisodes(); }
  } else if (name === "groups") once(name, showGroups);
  else if (name === "compare") once(name, showCompare);
  else show("overview");
  const tab = { episode: "episodes", group: "groups", pair: "compare" }[name] ?? name;
  for (const link of document.querySelectorAll("#tabs a")) link.toggleAttribute("aria-current", link.dataset.tab === tab);
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

async function openDetail(name, rest) {
  if (name === "group") return showGroup(rest[0]);
  if (name === "pair") {
    const places = [placeOf(rest[0], Number(rest[1])), placeOf(rest[2], Number(rest[3]))];
    return places.includes(-1) ? showMissing("pair", rest.join(", ")) : showPair(...places, [`A: ${rest[0]}`, `B: ${rest[2]}`]);
  }
  const place = placeOf(rest[0], Number(rest[1]));
  return place < 0 ? showMissing("episode", rest.join(", line ")) : showEpisode(place);
}

function showMissing(what, name) {
  byId("detail").replaceChildren(make("p", { class: "empty" }, `There is no ${what} ${name} in this report.`));
}

function start() {
  const names = data.runs.map((run) => run.name);
  document.title = `${names.join(" and ")} · visenv`;
  byId("name").textContent = names.join(" and ");
  byId("tabs").append(...TABS.map(([name, title, count]) => make("a", { href: `#/${name}`, "data-tab": name }, title, ...(count === "" ? [] : [make("small", {}, String(count))]))));
  byId("theme").addEventListener("click", switchTheme);
  byId("help").addEventListener("click", showKeys);
  byId("keys").querySelector("button").addEventListener("click", () => byId("keys").close());
  showProblems();
  showFacts();
  showSaved();
  showResults();
  showCurves();
  if (index.count) makeList();
  addEventListener("hashchange", route);
  addEventListener("keydown", onKey);
  route();
  // Load the texts before somebody searches, unless they are very large.
  if (parts.bytes_of_texts <= EAGER_BYTES) (window.requestIdleCallback ?? setTimeout)(() => loadTexts());
}

start();
