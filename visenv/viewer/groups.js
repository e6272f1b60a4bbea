// Lists the groups, and shows the members of one side by side.

const GROUP_ORDERS = [["", "as saved"], ["-spread", "spread ↓"], ["spread", "spread ↑"], ["-mean", "mean reward ↓"], ["mean", "mean reward ↑"]];
const groupState = { order: "", differing: false, page: 0 };

/** Return a group with its rewards; the mean omits aborted members and rewards that are not finite. */
function groupFacts([key, members]) {
  const rewards = members.map((place) => numberOf("reward", place));
  const known = rewards.filter((reward) => reward !== null);
  const middleReward = known.length ? mean(known) : null;
  const spread = known.length ? Math.sqrt(mean(known.map((reward) => (reward - middleReward) ** 2))) : null;
  return { key, members, rewards, mean: middleReward, spread };
}

const allGroups = severalMembers.map(groupFacts);

function showGroups() {
  const order = options(make("select", { "aria-label": "Order" }), GROUP_ORDERS, groupState.order);
  order.addEventListener("change", () => { groupState.order = order.value; groupState.page = 0; showGroups(); });
  const box = make("input", { type: "checkbox", ...(groupState.differing ? { checked: "" } : {}) });
  box.addEventListener("change", () => { groupState.differing = box.checked; groupState.page = 0; showGroups(); });
  const fits = orderedGroups();
  const from = groupState.page * PAGE;
  const bar = make("div", { class: "bar-line" }, make("p", {}, `${fits.length} of ${allGroups.length} groups`), make("label", {}, box, "rewards differ"), make("label", {}, "Sort ", order));
  const several = valuesOf("saved_in").length > 1;
  const rows = fits.slice(from, from + PAGE).map((group) => groupRow(group, several));
  const titles = ["Rewards", "Mean", "Spread", "Right", ...["question", "truth"].filter(tells).map((name) => name[0].toUpperCase() + name.slice(1)), ...(several ? ["Saved in"] : [])];
  const head = make("tr", {}, ...titles.map((title) => make("th", ["Mean", "Spread", "Right"].includes(title) ? { class: "number" } : {}, title)));
  const turn = (by) => () => { groupState.page += by; showGroups(); };
  const pages = fits.length > PAGE ? [make("div", { id: "group-pages", class: "bar-line" }, button("←", turn(-1), from ? {} : { disabled: "" }), make("span", {}, `${from + 1}–${Math.min(fits.length, from + PAGE)} of ${fits.length}`), button("→", turn(1), from + PAGE < fits.length ? {} : { disabled: "" }))] : [];
  byId("groups").replaceChildren(bar, make("table", { id: "group-list", class: "list" }, make("thead", {}, head), make("tbody", {}, ...rows)), ...pages);
}

function orderedGroups() {
  const fits = allGroups.filter((group) => !groupState.differing || group.spread > 0);
  const name = groupState.order.replace("-", "");
  const by = groupState.order.startsWith("-") ? -1 : 1;
  return name ? fits.slice().sort((one, other) => by * (one[name] - other[name])) : fits;
}

const tells = (name) => valuesOf(name).length > 1;

function groupRow(group, several) {
  const [first] = group.members;
  const outcomes = countedOutcomes(group.members);
  const told = (value) => (outcomes.length ? number(value) : "–");
  const right = outcomes.some((each) => ["right", "wrong"].includes(each)) ? `${outcomes.filter((each) => each === "right").length}/${outcomes.length}` : "–";
  const cell = (title, content, kind = "") => make("td", { "data-title": title, "data-column": title.toLowerCase(), class: kind }, content);
  const row = make("tr", { class: "row", tabindex: 0, role: "link" },
    cell("Rewards", rewardDots(group)), cell("Mean", told(group.mean), "number"), cell("Spread", told(group.spread), "number"), cell("Right", right, "number"),
    ...["question", "truth"].filter(tells).map((name) => cell(name[0].toUpperCase() + name.slice(1), make("div", { class: "brief" }, textOf(name, first) || "–"))),
    ...(several ? [cell("Saved in", textOf("saved_in", first))] : []));
  const open = () => go(groupLink(group.key));
  row.addEventListener("click", open);
  row.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
  return row;
}

/** Draw a dot for each member, between the lowest and the highest reward of the run. */
function rewardDots({ members }) {
  const [low, high] = rewardRange();
  const layer = draw("svg", { class: "dots", viewBox: "0 0 104 14" }, draw("line", { class: "axis", x1: 2, x2: 102, y1: 7, y2: 7 }));
  for (const place of members) {
    const reward = numberOf("reward", place);
    if (reward === null) continue;
    const across = high > low ? 4 + 96 * (reward - low) / (high - low) : 52;
    layer.append(draw("circle", { class: textOf("outcome", place), cx: across, cy: 7, r: 3.5 }, draw("title", {}, `member ${numberOf("member", place)}: ${number(reward)}`)));
  }
  return layer;
}

const rewardRange = (() => {
  let range = null;
  return () => {
    range ??= index.numbers.reward.reduce(([low, high], reward) => (reward === null ? [low, high] : [Math.min(low, reward), Math.max(high, reward)]), [Infinity, -Infinity]);
    return range;
  };
})();

// ------------------------------------------------------------------ side by side

async function showGroup(name) {
  const key = [name, ...data.runs.map((run) => `${run.name}: ${name}`)].find((each) => groups.has(each));
  if (key === undefined) return showMissing("group", name);
  const members = groups.get(key);
  const at = allGroups.findIndex((group) => group.key === key);
  const step = (by, text) => button(text, () => go(groupLink(allGroups[at + by].key)), allGroups[at + by] ? { title: by < 0 ? "previous (p)" : "next (n)" } : { disabled: "" });
  const crumbs = make("nav", { class: "crumbs" }, make("a", { href: "#/groups" }, "Groups"), make("span", {}, `${at + 1} of ${allGroups.length}`), step(-1, "←"), step(1, "→"), make("a", { href: location.hash, class: "soft" }, key));
  await sideBySide({ crumbs, places: members, labels: members.map((place) => `member ${numberOf("member", place)}`), all: "all members" });
}

async function showPair(one, other, labels) {
  const crumbs = make("nav", { class: "crumbs" }, make("a", { href: "#/compare" }, "Compare"), make("span", {}, "the same sample, played twice"));
  await sideBySide({ crumbs, places: [one, other], labels, all: "both episodes" });
}

/** Show episodes in columns, with marked differences from the reference. `all` names the episodes in texts. */
async function sideBySide(shownTogether, reference = bestOf(shownTogether.places)) {
  const { crumbs, places, labels, all } = shownTogether;
  const view = byId("detail");
  const route = location.hash;
  const episodes = await Promise.all(places.map(episodeAt));
  if (view.dataset.route !== route) return;
  const title = make("h1", {}, firstLine(episodes[0].truth.question) || episodes[0].id);
  const again = (next) => sideBySide(shownTogether, next);
  view.replaceChildren(make("div", { class: "head" }, crumbs, title), memberTable(episodes, shownTogether), openingOf(episodes, labels, all), memberTurns(episodes, places, labels, reference, again));
}

/** Fold the messages before the first turn; they can differ between two runs with other settings. */
function openingOf(episodes, labels, all) {
  const [first, ...others] = episodes.map(({ turns }) => turns[0]?.messages ?? []);
  // The images of two runs are in different folders, and the name of a file is the hash of its image.
  const content = (messages) => JSON.stringify(messages, (name, value) => (name === "image" ? value.split("/").pop() : value));
  const equal = others.every((messages) => content(messages) === content(first));
  const title = `First messages ${equal ? `(the same for ${all})` : `of ${labels[0]}`}`;
  return make("details", { class: "panel opening" }, make("summary", {}, title), ...first.map((message) => messageBubble(message, [], [])));
}

function bestOf(places) {
  const rewards = places.map((place) => numberOf("reward", place) ?? -Infinity);
  return rewards.indexOf(largest(rewards));
}

/**
 * Add a row for each fact in which episodes differ; equal facts are in one line below.
 *
 * Members of a group get their advantages. Two episodes of a comparison get a column with the difference instead,
 * because they are played by different policies.
 */
function memberTable(episodes, { places, labels, all }) {
  const pair = all === "both episodes";
  const rewards = places.map((place) => numberOf("reward", place));
  const middleReward = mean(rewards.filter((reward) => reward !== null));
  const saved = episodes.map(advantageOf);
  const facts = [
    ["outcome", episodes.map(({ outcome }) => outcome), (value) => badge(value)],
    ["reward", episodes.map(({ outcome, reward }) => rewardText(outcome, reward)), null, rewards],
    ...(saved.some((each) => each !== null) ? [["advantage", saved, advantageCell]] : pair ? [] : [["reward − mean", rewards.map((reward) => (reward === null ? null : reward - middleReward)), advantageCell]]),
    ["answer", episodes.map(({ answer }) => answer ?? "–"), (value) => make("pre", {}, value)],
    ...termRows(episodes),
    ...[...new Set(episodes.flatMap(({ metrics }) => Object.keys(metrics)))].map((name) => [name, episodes.map(({ metrics }) => (Object.hasOwn(metrics, name) ? number(metrics[name]) : "–")), null, episodes.map(({ metrics }) => metrics[name])]),
    ["turns", episodes.map(({ turns }) => String(turns.length)), null, episodes.map(({ turns }) => turns.length)],
    ["tokens", places.map((place) => (numberOf("tokens", place) === null ? "–" : String(numberOf("tokens", place)))), null, places.map((place) => numberOf("tokens", place))],
    ["time", places.map((place) => (numberOf("seconds", place) === null ? "–" : seconds(numberOf("seconds", place))))],
  ];
  const varies = ([, values]) => values.some((value) => value !== values[0]);
  const same = facts.filter((fact) => !varies(fact) && fact[1][0] !== "–" && fact[1][0] !== null);
  const head = make("tr", {}, make("th", {}, ""), ...places.map((place, member) => make("th", {}, make("a", { href: episodeLink(place) }, ...breakable(labels[member])))), ...(pair ? [make("th", {}, "B − A")] : []));
  const rows = facts.filter(varies).map(([name, values, cell, measured]) => make("tr", {}, make("th", {}, name), ...values.map((value) => make("td", {}, cell ? cell(value) : value)), ...(pair ? [make("td", {}, differenceOf(measured))] : [])));
  const line = same.length ? make("p", { class: "soft" }, `Equal for ${all}: ${same.map(([name, [value]]) => `${name} = ${typeof value === "number" ? number(value) : value}`).join(" · ")}`) : "";
  return make("div", { class: "panel members" }, make("div", { class: "wide" }, make("table", { class: "member-table" }, make("thead", {}, head), make("tbody", {}, ...rows))), line);
}

/** Return B − A of two numbers, or an empty text. */
function differenceOf(measured) {
  const [one, other] = measured ?? [];
  return typeof one === "number" && typeof other === "number" ? signed(other - one) : "";
}

const advantageCell = (value) => (value === null ? "–" : make("span", { class: sign(value) }, signed(value)));

/** Return weighted terms if the weights are known, so that the rows add up to the reward. */
function termRows(episodes) {
  const names = [...new Set(episodes.flatMap(({ terms }) => Object.keys(terms)))];
  return names.map((name) => {
    const weighed = episodes.every(({ weights }) => Object.hasOwn(weights, name));
    const values = episodes.map((episode) => (weighed ? paidBy(episode, name) : episode.terms[name]));
    const weights = new Set(episodes.map(({ weights: each }) => each[name]));
    const title = !weighed ? name : weights.size > 1 ? `${name} × its weight` : `${name} × ${number([...weights][0])}`;
    return [title, values.map((value) => (value === null || value === undefined ? "–" : number(value))), null, values];
  });
}

/** Add a column for each member and a row for each turn, so that the same turns are side by side. */
function memberTurns(episodes, places, labels, reference, again) {
  const longest = largest(episodes.map(({ turns }) => turns.length));
  const heads = places.map((place, member) => make("div", { class: "member-head" }, make("a", { href: episodeLink(place) }, labels[member]), badge(episodes[member].outcome), make("span", {}, rewardText(episodes[member].outcome, episodes[member].reward)),
    member === reference ? make("small", {}, "reference") : button("compare with this", () => again(member), { class: "quiet" })));
  const cells = Array.from({ length: longest }, (_, turn) => episodes.map((episode, member) => memberTurn(episode, turn, member === reference ? null : episodes[reference]))).flat();
  return make("div", { class: "side-by-side wide", style: `--members: ${places.length}` }, ...heads, ...memberLooks(episodes), ...cells);
}

/** Return a cell for each member with the first images, on which its crops and points are drawn; none if nothing is drawn. */
function memberLooks(episodes) {
  const looks = episodes.map(({ turns, marks }) => (turns[0]?.messages ?? []).flatMap(({ parts }) => parts)
    .filter((part) => part.image && marks.some((mark) => mark.image === part.name)).map((part) => picture(part, marks)));
  return looks.some((pictures) => pictures.length) ? looks.map((pictures) => make("div", { class: "member-look" }, ...pictures)) : [];
}

function memberTurn(episode, place, reference) {
  const turn = episode.turns[place];
  if (!turn) return make("div", { class: "member-turn none" }, "ended");
  const before = place ? turn.messages.flatMap(({ parts: all }) => all) : [];
  const images = before.flatMap((part) => (part.image ? [picture(part, [], 96)] : []));
  const told = before.filter((part) => part.text?.trim()).map((part) => make("pre", { class: "told" }, part.text.trim()));
  const whole = turn.prefix + turn.text;
  const other = reference?.turns[place];
  const text = make("pre", {}, ...(reference === null ? [whole] : other ? marked(whole, other.prefix + other.text) : [make("mark", {}, whole)]));
  return make("div", { class: "member-turn" }, ...told, ...images, make("div", { class: "bubble policy" }, turnHead(turn, place), text, ...(turn.events.length ? [eventList(turn.events)] : [])));
}
