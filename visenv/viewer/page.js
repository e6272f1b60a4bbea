"use strict";
// The parts all sections use, the head of the page and the results.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

/** A number as a person reads it; what was NaN or infinite comes as null and is said so. */
function number(value) {
  if (value === null || value === undefined) return "not finite";
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 1000 ? value.toFixed(0) : Math.abs(value) >= 0.01 ? value.toFixed(3) : value.toPrecision(2);
}

/** An element with children. Texts are only ever text: a policy may have written them. */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function showHead() {
  document.title = `${data.name} · visenv`;
  byId("name").textContent = data.name;
  const [shown, all] = [data.episodes.length, data.episodes_in_all];
  const selection = shown < all ? `; this page holds an even selection of ${shown}` : "";
  byId("summary").textContent = `${data.metrics.length} steps logged, ${all} episodes saved${selection}.`;
}

function showProblems() {
  byId("problems").hidden = !data.problems.length;
  byId("problems").querySelector("ul").append(...data.problems.map((problem) => make("li", {}, problem)));
}

function showResults() {
  if (!data.results.length) return;
  byId("results").hidden = false;
  const columns = [...new Set(data.results.flatMap(Object.keys))].map(resultColumn);
  const table = byId("results").querySelector("table");
  table.append(make("thead", {}, make("tr", {}, ...columns.map(({ name }) => make("th", {}, name)))));
  table.append(make("tbody", {}, ...data.results.map((row) => make("tr", {}, ...columns.map((column) => resultCell(row[column.name], column))))));
}

/** How to show a column: a count has whole numbers only, a share lies between 0 and 1 and gets a bar. */
function resultColumn(name) {
  const values = data.results.map((row) => middle(row[name])).filter((value) => typeof value === "number");
  const count = values.every(Number.isInteger) && !data.results.some((row) => Array.isArray(row[name]));
  return { name, count, share: !count && values.every((value) => value >= 0 && value <= 1) };
}

/** The value of a result, of a mean with its interval as of a plain number. */
const middle = (value) => (Array.isArray(value) ? value[0] : value);

function resultCell(value, { count, share }) {
  if (typeof value === "string") return make("td", {}, value);
  if (typeof middle(value) !== "number") return make("td", {}, "–");
  const shown = count ? String(value) : middle(value).toFixed(3);
  const bounds = Array.isArray(value) && typeof value[1] === "number" ? ` [${value[1].toFixed(3)}, ${value[2].toFixed(3)}]` : "";
  const cell = make("td", {}, shown + bounds);
  if (share) cell.append(make("span", { class: "bar" }, make("i", { style: `width: ${100 * middle(value)}%` })));
  return cell;
}
