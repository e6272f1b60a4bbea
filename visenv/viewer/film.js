// Shows frames of a turn that the policy did not see, with a slider.

function hiddenFrames(film) {
  const last = film.times.length - 1;
  const views = film.views.map(() => make("img", { class: "film", alt: "hidden frame", width: SMALLEST }));
  const caption = make("code", {}, "");
  const goals = Object.entries(film.goals).map(([name, held]) => make("span", { class: held ? "goal met" : "goal" }, `${held ? "✓" : "·"} ${name}`));
  const slider = make("input", { type: "range", min: 0, max: last, value: last, "aria-label": "frame of the turn" });
  const show = () => {
    const place = Number(slider.value);
    for (const [index, view] of views.entries()) view.src = film.views[index][place];
    caption.textContent = `${(film.times[place] ?? NaN).toFixed(2)} s  ${film.actions[place]}`;
    for (const goal of goals) goal.hidden = place < last;
  };
  slider.addEventListener("input", show);
  const play = make("button", { type: "button", title: "play" }, "▶");
  play.addEventListener("click", () => playFilm(slider, last, show));
  show();
  return make("figure", { class: "picture hidden-frames" }, make("div", {}, ...views), make("div", {}, play, slider), make("figcaption", {}, caption, ...goals));
}

function playFilm(slider, last, show) {
  let place = -1;
  const timer = setInterval(() => {
    place += 1;
    slider.value = place;
    show();
    if (place >= last) clearInterval(timer);
  }, 50);
}
