// The table of episodes and its filters.

const PAGE = 100;
const filters = byId("filters");
let limit = PAGE;

/** Right and wrong are said of finished episodes whose task has an accuracy. */
function outcome(episode) {
  if (episode.status !== "terminated") return episode.status;
  if (typeof episode.metrics.accuracy !== "number") return "finished";
  return episode.metrics.accuracy >= 0.5 ? "right" : "wrong";
}

function holds(episode, text) {
  const texts = [episode.id, episode.truth.question ?? "", episode.answer ?? "", ...episode.turns.map((turn) => turn.prefix + turn.text)];
  return texts.some((each) => String(each).toLowerCase().includes(text));
}

function fitting() {
  const value = (name) => filters.elements[name].value;
  const [low, high] = [parseFloat(value("low")), parseFloat(value("high"))];
  const bounded = !Number.isNaN(low) || !Number.isNaN(high);
  const text = value("text").toLowerCase();
  return data.episodes.filter((episode) =>
    (!value("file") || episode.file === value("file")) &&
    (!value("outcome") || outcome(episode) === value("outcome")) &&
    !(bounded && episode.reward === null) && !(episode.reward < low) && !(episode.reward > high) &&
    (!text || holds(episode, text)));
}

function listEpisodes() {
  const fits = fitting();
  byId("list").querySelector("tbody").replaceChildren(...fits.slice(0, limit).map(episodeRow));
  byId("count").textContent = `${fits.length} of ${data.episodes.length}`;
  byId("none").hidden = fits.length > 0;
  byId("more").hidden = fits.length <= limit;
  byId("more").textContent = `Show ${Math.min(PAGE, fits.length - limit)} more`;
}

function episodeRow(episode) {
  const result = outcome(episode);
  const brief = (text) => make("td", {}, make("div", { class: "brief" }, text));
  const row = make("tr", { class: "row", tabindex: 0, "aria-expanded": "false" },
    brief(episode.file), brief(episode.id),
    brief(String(episode.truth.question ?? "")), brief(episode.answer ?? "–"), brief(accepted(episode)),
    make("td", { class: "number" }, String(episode.turns.length)), make("td", { class: "number" }, typeof episode.reward === "number" ? episode.reward.toFixed(3) : number(null)),
    make("td", {}, make("span", { class: `outcome ${result}` }, result)));
  row.addEventListener("click", () => toggle(row, episode));
  row.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    toggle(row, episode);
  });
  return row;
}

/** The accepted answers, each once: ten people often say the same. */
function accepted(episode) {
  const answers = Array.isArray(episode.truth.answers) ? [...new Set(episode.truth.answers)] : [];
  return answers.slice(0, 3).join(", ") + (answers.length > 3 ? ", …" : "");
}

function toggle(row, episode) {
  const open = row.getAttribute("aria-expanded") === "true";
  row.setAttribute("aria-expanded", String(!open));
  if (open) row.nextSibling.remove();
  else row.after(make("tr", { class: "detail" }, make("td", { colspan: row.children.length }, make("div", { class: "episode" }, ...episodeDetails(episode)))));
}

function showEpisodes() {
  byId("episodes").hidden = !data.episodes.length;
  for (const [name, of] of [["file", (episode) => episode.file], ["outcome", outcome]]) {
    const values = [...new Set(data.episodes.map(of))];
    filters.elements[name].append(...values.map((value) => make("option", { value }, value)));
  }
  const again = () => { limit = PAGE; listEpisodes(); };
  filters.addEventListener("input", again);
  filters.addEventListener("reset", () => setTimeout(again));  // the fields are cleared after the event
  filters.addEventListener("submit", (event) => event.preventDefault());
  byId("more").addEventListener("click", () => { limit += PAGE; listEpisodes(); });
  listEpisodes();
}

showHead();
showProblems();
showResults();
showCurves();
showEpisodes();
