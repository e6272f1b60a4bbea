// Shows one episode: how it ended, its reward, and its turns.

async function showEpisode(place) {
  const view = byId("detail");
  const episode = await episodeAt(place);
  if (view.dataset.route !== location.hash) return;  // the reader has gone on
  view.replaceChildren(episodeHead(episode, place), make("div", { class: "episode" }, conversation(episode), asideOf(episode)));
}

function episodeHead(episode, place) {
  const members = groups.get(groupKey(place));
  const around = shown.indexOf(place);
  const step = (by, text, title) => button(text, () => go(episodeLink(shown[around + by])), { title, ...(around < 0 || shown[around + by] === undefined ? { disabled: "" } : {}) });
  const where = make("nav", { class: "crumbs" },
    make("a", { href: listLink() }, "Episodes"),
    make("span", {}, around < 0 ? "" : `${around + 1} of ${shown.length}`),
    step(-1, "←", "previous (p)"), step(1, "→", "next (n)"),
    ...(members.length > 1 ? [make("a", { href: groupLink(groupKey(place)) }, `Group ${episode.group}: ${members.length} members side by side`)] : []),
    make("a", { href: location.hash, class: "soft", title: "a link to this episode" }, `${episode.saved_in}, line ${episode.line + 1}`));
  const title = make("h1", {}, firstLine(episode.truth.question) || episode.id || `Episode ${place + 1}`);
  return make("div", { class: "head" }, where, title, verdict(episode));
}

const firstLine = (text) => (text ?? "").trim().split("\n")[0].slice(0, 160);

function verdict(episode) {
  const item = (name, ...content) => make("div", {}, make("dt", {}, name), make("dd", {}, ...content));
  const answers = Array.isArray(episode.truth.answers) ? [...new Set(episode.truth.answers)] : [];
  const given = advantageOf(episode);
  return make("dl", { class: "panel verdict" },
    item("Outcome", badge(episode.outcome)),
    item("Reward", rewardText(episode.outcome, episode.reward)),
    ...(given === null ? [] : [item("Advantage", make("span", { class: sign(given) }, signed(given)))]),
    ...(episode.answer === null && !answers.length ? [] : [item("Answer", make("pre", {}, episode.answer ?? "–"))]),
    ...(answers.length ? [item(answers.length > 1 ? "Accepted" : "Truth", make("pre", {}, answers.join("\n")))] : []));
}

/** Return the mean over the turns; null if the episode was not used in training. */
function advantageOf(episode) {
  const given = episode.turns.map((turn) => turn.advantage).filter((each) => typeof each === "number");
  return given.length ? mean(given) : null;
}

const badge = (outcome) => make("span", { class: `outcome ${outcome}` }, outcome);

function conversation(episode) {
  const box = make("div", { class: "conversation" });
  const { marks, lanes } = episode;
  for (const [place, turn] of episode.turns.entries()) {
    box.append(...turn.messages.map((message) => messageBubble(message, marks, lanes)), turnBubble(turn, place));
  }
  box.append(...episode.closing.map((message) => messageBubble(message, marks, lanes)));
  return box;
}

function asideOf(episode) {
  const ended = episode.reason ? `${episode.status}: ${episode.reason}` : episode.status;
  const sampled = episode.turns.map((turn) => turn.tokens).filter((each) => each !== undefined);
  const tokens = sampled.length ? `${sampled.reduce((sum, each) => sum + each, 0)} sampled, ${episode.context} in all` : "";
  const spent = episode.turns.flatMap((turn) => turn.seconds).filter((each) => typeof each === "number");
  const time = spent.length ? seconds(spent.reduce((sum, each) => sum + each, 0)) : "";
  const facts = { ended, env: episode.env, sample: episode.id, kind: episode.kind, seed: episode.seed, row: episode.index ?? "", group: episode.group, member: episode.member, tokens, time };
  return make("aside", {}, rewardTable(episode), factTable("Metrics", episode.metrics), factTable("Truth", episode.truth), factTable("Episode", facts));
}

// ------------------------------------------------------------------ reward

/** Return the contribution of a term, its value times its weight; null without a weight. */
function paidBy(episode, name) {
  const weight = episode.weights[name];
  return typeof weight === "number" && typeof episode.terms[name] === "number" ? weight * episode.terms[name] : null;
}

/** List the terms with weights and contributions, in rows that add up to the reward. */
function rewardTable(episode) {
  const names = Object.keys(episode.terms);
  const weighed = names.some((name) => Object.hasOwn(episode.weights, name));
  const cells = (tag, ...texts) => texts.map((text, place) => make(tag, place ? { class: "number" } : {}, text));
  const table = make("table", { class: "reward" }, make("caption", {}, "Reward"));
  if (weighed) table.append(make("thead", {}, make("tr", {}, ...cells("th", "term", "value", "weight", "paid"))));
  const body = make("tbody", {}, ...names.map((name) => {
    const value = episode.terms[name], note = episode.notes[name] ?? "";
    const told = value === null ? (note ? "–" : "not finite") : number(value);
    const row = weighed ? cells("td", name, told, `× ${number(Object.hasOwn(episode.weights, name) ? episode.weights[name] : 0).replace("-", "−")}`, paidBy(episode, name) === null ? "–" : number(paidBy(episode, name))) : cells("td", name, told);
    return make("tr", note ? { title: note } : {}, ...row);
  }));
  const span = weighed ? 3 : 1;
  const line = (name, value, attributes) => make("tr", attributes, make("td", { colspan: span }, name), make("td", { class: "number" }, value));
  const rest = weighed && episode.outcome !== "aborted" ? (episode.reward ?? 0) - names.reduce((sum, name) => sum + (paidBy(episode, name) ?? 0), 0) : 0;
  if (Math.abs(rest) > 1e-6) body.append(line("paid beside the terms", number(rest), { title: "by the environment's steps, a rule that combines the terms, or a wrapper" }));
  const total = line("reward", rewardText(episode.outcome, episode.reward), { class: "total" });
  const note = make("tr", {}, make("td", { colspan: 2, class: "soft" }, "A rule combines the terms, or their weights were not saved."));
  table.append(body, make("tfoot", {}, total, ...(names.length && !weighed ? [note] : [])));
  return table;
}
