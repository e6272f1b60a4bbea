"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const number = (value, digits = 3) => (typeof value === "number" ? value.toFixed(digits) : "");

/** An element with text and children. Texts are only ever text: a policy may have written them. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

function draw(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function showHead() {
  document.title = `visenv: ${data.name}`;
  byId("name").textContent = data.name;
  const shown = data.episodes.length;
  const selection = shown < data.episodes_in_all ? `, ${shown} of them shown` : "";
  byId("summary").textContent = `${data.metrics.length} steps logged, ${data.episodes_in_all} episodes saved${selection}.`;
}

function showResults() {
  if (!data.results || !data.results.rows || !data.results.rows.length) return;
  byId("results").hidden = false;
  const columns = Object.keys(data.results.rows[0]);
  const table = byId("results").querySelector("table");
  table.append(make("tr", {}, ...columns.map((name) => make("th", {}, name))));
  for (const row of data.results.rows) {
    const cells = columns.map((name) => make("td", {}, typeof row[name] === "number" ? number(row[name]) : String(row[name] ?? "")));
    table.append(make("tr", {}, ...cells));
  }
}

const FIRST_CURVES = ["reward", "metrics/accuracy", "metrics/hit", "metrics/zoomed", "terms/format", "entropy", "loss"];

function showCurves() {
  const phases = new Map();
  for (const row of data.metrics) {
    const phase = row.phase ?? "training";
    if (!phases.has(phase)) phases.set(phase, []);
    phases.get(phase).push(row);
  }
  for (const [phase, rows] of phases) {
    const names = [...new Set(rows.flatMap(Object.keys))].filter((name) => name !== "step" && rows.some((row) => typeof row[name] === "number"));
    const rank = (name) => (FIRST_CURVES.indexOf(name) + 1 || 99);
    names.sort((one, other) => rank(one) - rank(other) || one.localeCompare(other));
    for (const name of names) showCurve(phase, name, rows.filter((row) => typeof row[name] === "number"));
  }
}

function showCurve(phase, name, rows) {
  byId("curves").hidden = false;
  const points = rows.map((row, index) => [row.step ?? index, row[name]]);
  const values = points.map((point) => point[1]);
  const low = Math.min(...values), high = Math.max(...values), span = high - low || 1;
  const first = points[0][0], range = points[points.length - 1][0] - first || 1;
  const place = ([step, value]) => [40 + 290 * (step - first) / range, 130 - 118 * (value - low) / span];
  const line = (list) => list.map((point) => place(point).map((each) => each.toFixed(1)).join(",")).join(" ");
  const picture = draw("svg", { viewBox: "0 0 340 150", role: "img", "aria-label": `${name} by step` });
  picture.append(draw("line", { class: "axis", x1: 40, y1: 130, x2: 330, y2: 130 }), draw("line", { class: "axis", x1: 40, y1: 12, x2: 40, y2: 130 }));
  for (const [text, x, y, anchor] of [[number(high), 36, 18, "end"], [number(low), 36, 130, "end"], [first, 40, 145, "start"], [first + range, 330, 145, "end"]]) {
    const label = draw("text", { class: "tick", x, y, "text-anchor": anchor });
    label.textContent = String(text);
    picture.append(label);
  }
  const window = Math.max(1, Math.round(points.length / 12));
  const smooth = points.map(([step], index) => {
    const part = values.slice(Math.max(0, index - window + 1), index + 1);
    return [step, part.reduce((sum, value) => sum + value, 0) / part.length];
  });
  picture.append(draw("polyline", { class: "raw", points: line(points) }), draw("polyline", { class: "smooth", points: line(smooth) }));
  const last = make("span", {}, `${phase} · ${number(smooth[smooth.length - 1][1])}`);
  byId("curves").querySelector(".charts").append(make("figure", {}, make("figcaption", {}, name, last), picture));
}

function outcome(episode) {
  if (episode.status !== "terminated") return episode.status;
  return (episode.metrics.accuracy ?? 0) >= 0.5 ? "right" : "wrong";
}

function haystack(episode) {
  return [episode.id, episode.truth.question, episode.answer, ...episode.turns.map((turn) => turn.text)].join("\n").toLowerCase();
}

const PAGE = 100;
let limit = PAGE;

function listEpisodes() {
  const filters = new FormData(byId("filters"));
  const low = parseFloat(filters.get("low")), high = parseFloat(filters.get("high"));
  const text = filters.get("text").toLowerCase();
  const fits = data.episodes.filter((episode) =>
    (!filters.get("file") || episode.file === filters.get("file")) &&
    (!filters.get("outcome") || outcome(episode) === filters.get("outcome")) &&
    !(episode.reward < low) && !(episode.reward > high) && (!text || haystack(episode).includes(text)));
  const body = byId("list").querySelector("tbody");
  body.replaceChildren(...fits.slice(0, limit).map(episodeRow));
  byId("count").textContent = `${fits.length} of ${data.episodes.length}`;
  byId("more").hidden = fits.length <= limit;
}

function episodeRow(episode) {
  const result = outcome(episode);
  const texts = [episode.file, episode.id, episode.kind, episode.truth.question ?? "", episode.answer ?? "",
    (episode.truth.answers ?? []).slice(0, 3).join(", "), String(episode.turns.length), number(episode.reward)];
  const row = make("tr", { class: "row", tabindex: 0, "aria-expanded": "false" }, ...texts.map((text) => make("td", {}, text)), make("td", { class: result }, result));
  row.addEventListener("click", () => toggle(row, episode));
  row.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(row, episode); });
  return row;
}

function toggle(row, episode) {
  const open = row.getAttribute("aria-expanded") === "true";
  row.setAttribute("aria-expanded", String(!open));
  if (open) row.nextSibling.remove();
  else row.after(make("tr", { class: "detail" }, make("td", { colspan: 9 }, ...details(episode))));
}

function details(episode) {
  const calls = episode.turns.flatMap((turn) => turn.events).filter((event) => event.event === "ToolCalled" && event.detail && event.detail.shown_box);
  const marks = { calls, drawn: false };
  const parts = [];
  for (const [index, turn] of episode.turns.entries()) {
    parts.push(...turn.messages.map((message) => messageBubble(message, marks)));
    parts.push(make("div", { class: "bubble policy" }, make("b", {}, `policy, turn ${index + 1} (${turn.finish})`), make("pre", {}, turn.text)));
    parts.push(make("ul", { class: "events" }, ...turn.events.filter((event) => event.event !== "TurnTaken").map((event) => make("li", {}, JSON.stringify(event)))));
  }
  parts.push(...episode.closing.map((message) => messageBubble(message, marks)));
  const reason = episode.reason ? { ended: `${episode.status}: ${episode.reason}` } : {};
  const facts = { seed: episode.seed, group: episode.group, member: episode.member, tokens: episode.tokens, ...reason };
  parts.push(make("div", { class: "facts" }, factTable("reward terms", episode.terms), factTable("metrics", episode.metrics), factTable("truth", episode.truth), factTable("episode", facts)));
  return parts;
}

function factTable(title, facts) {
  const rows = Object.entries(facts).map(([name, value]) => make("tr", {}, make("td", {}, name), make("td", {}, typeof value === "number" && !Number.isInteger(value) ? number(value) : typeof value === "string" ? value : JSON.stringify(value))));
  return make("table", {}, make("tr", {}, make("th", { colspan: 2 }, title)), ...rows);
}

function messageBubble(message, marks) {
  const parts = message.parts.map((part) => (part.image ? picture(part, marks) : make("pre", {}, part.text)));
  return make("div", { class: "bubble" }, make("b", {}, message.role), ...parts);
}

/** An image; on the first one, which is the source, the boxes that the zoom cut from it. */
function picture(part, marks) {
  const frame = make("span", { class: "picture" }, make("img", { src: part.image, width: Math.max(part.width, 192), alt: `${part.width}x${part.height} image`, loading: "lazy" }));
  if (marks.drawn || !marks.calls.length) return frame;
  marks.drawn = true;
  const overlay = draw("svg", { viewBox: `0 0 ${part.width} ${part.height}` });
  for (const { detail } of marks.calls) {
    const [left, top, right, bottom] = detail.shown_box;
    overlay.append(draw("rect", { class: "zoom", x: left, y: top, width: right - left, height: bottom - top }));
    if (detail.keypoint) overlay.append(draw("circle", { class: "point", cx: detail.keypoint[0], cy: detail.keypoint[1], r: Math.max(part.width, part.height) / 100 }));
  }
  frame.append(overlay);
  return frame;
}

function showEpisodes() {
  if (!data.episodes.length) return;
  byId("episodes").hidden = false;
  const files = [...new Set(data.episodes.map((episode) => episode.file))];
  byId("filters").elements.file.append(make("option", { value: "" }, "all"), ...files.map((file) => make("option", { value: file }, file)));
  byId("filters").addEventListener("input", () => { limit = PAGE; listEpisodes(); });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("more").addEventListener("click", () => { limit += PAGE; listEpisodes(); });
  listEpisodes();
}

showHead();
showResults();
showCurves();
showEpisodes();
