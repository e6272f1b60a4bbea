"use strict";
// Contains the functions that all views use: elements, numbers, the theme.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

/** Format a number; null is a value that was NaN or infinite, and is shown as such. */
function number(value) {
  if (value === null || value === undefined) return "not finite";
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1000 ? value.toFixed(0) : size >= 0.01 ? value.toFixed(3) : value.toPrecision(2);
}

/** Return the reward of an episode; an aborted one has none. */
const rewardText = (outcome, reward) => (outcome === "aborted" ? "–" : number(reward));

/** Format a number with its sign, for differences and advantages; rounding errors are shown as 0. */
const signed = (value) => (Math.abs(value) < 1e-9 ? "0" : value > 0 ? `+${number(value)}` : number(value).replace("-", "−"));

const seconds = (value) => (value >= 100 ? `${value.toFixed(0)} s` : value >= 1 ? `${value.toFixed(1)} s` : value >= 0.001 ? `${(value * 1000).toFixed(0)} ms` : "<1 ms");

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Return the largest number; a list may be too long for the arguments of Math.max. */
const largest = (values) => values.reduce((one, other) => Math.max(one, other), -Infinity);

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Return an element with children. Texts are only inserted as text, because a policy may have written them. */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") element.style.cssText = value;  // the page's policy forbids the attribute
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Return a dotted name, which may be broken after a dot or an underscore. */
const breakable = (name) => name.split(/(?<=[._])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part]));

function button(text, act, attributes = {}) {
  const made = make("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
}

function options(select, values, chosen) {
  select.replaceChildren(...values.map(([value, text]) => make("option", value === chosen ? { value, selected: "" } : { value }, text)));
  return select;
}

// ------------------------------------------------------------------ theme

const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function switchTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("visenv-theme", document.documentElement.dataset.theme); } catch { /* no storage for files */ }
}

try {
  const theme = localStorage.getItem("visenv-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* no storage for files */ }
