// Handles the keyboard.

const KEYS = [
  ["j, ↓", "next row"], ["k, ↑", "previous row"], ["Enter", "open the row"], ["n, →", "next episode, group or page"], ["p, ←", "previous episode, group or page"],
  ["g", "the group of the episode"], ["Esc, u", "back to the list"], ["/", "search"], ["1, 2, 3, 4", "views"], ["t", "dark or light"], ["?", "these keys"],
];

function showKeys() {
  const dialog = byId("keys");
  if (!dialog.querySelector("tr")) dialog.querySelector("table").append(...KEYS.map(([key, told]) => make("tr", {}, make("td", {}, make("kbd", {}, key)), make("td", {}, told))));
  dialog.showModal();
}

function moveRow(by) {
  const rows = [...document.querySelectorAll(".view:not([hidden]) tr.row")];
  if (!rows.length) return;
  const now = rows.indexOf(document.activeElement);
  const next = rows[now < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, now + by))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

/** Press the button for the next or previous item of the visible view. */
function pressStep(place) {
  const steps = document.querySelectorAll(".view:not([hidden]) .crumbs button, .view:not([hidden]) :is(#pages, #group-pages) button");
  steps[place]?.click();
}

function back() {
  const crumb = document.querySelector(".view:not([hidden]) .crumbs a");
  if (crumb) go(crumb.getAttribute("href"));
}

const ACTIONS = {
  j: () => moveRow(1), ArrowDown: () => moveRow(1), k: () => moveRow(-1), ArrowUp: () => moveRow(-1),
  n: () => pressStep(1), ArrowRight: () => pressStep(1), p: () => pressStep(0), ArrowLeft: () => pressStep(0),
  g: () => { const link = document.querySelector(".view:not([hidden]) .crumbs a[href^='#/group/']"); if (link) go(link.getAttribute("href")); },
  Escape: back, u: back, t: switchTheme, "?": showKeys,
  "/": () => { go(listLink()); setTimeout(() => filters.elements.text.focus()); },
};

/** Scroll a transcript with the arrows up and down, or move the row of a list. */
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  if (/^(input|select|textarea)$/i.test(event.target.tagName)) {
    if (event.key === "Escape") {
      event.preventDefault();  // which would clear the field, and tell nobody
      event.target.blur();
    }
    return;
  }
  const tab = "1234".includes(event.key) ? document.querySelectorAll("#tabs a")[Number(event.key) - 1] : null;
  const act = tab ? () => go(tab.getAttribute("href")) : ACTIONS[event.key];
  if (!act || (/^Arrow(Up|Down)$/.test(event.key) && !document.querySelector(".view:not([hidden]) tr.row"))) return;
  event.preventDefault();
  act();
}
