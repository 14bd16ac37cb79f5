#include "report/holdings.h"

namespace zt {

// Goes through the moments of all panels at once. A panel's picture at a place is made anew from its beginning: moments
// are some thousands at most, and so no way back has to be known. No ampersand, no less-than: the page is XML, too.
const char* holdings_script() {
  return R"js(
(function () {
  "use strict";
  const STEP = 0, FORWARD = 1, BACKWARD = 2, FINISH = 3, COMPUTE = 4, UPDATE = 5, GATHER = 6, REDUCE = 7, FREE = 8;
  const panels = JSON.parse(document.getElementById("moments").textContent);
  const by = function (id) { return document.getElementById(id); };
  const places = Array.from(new Set([0].concat(...panels.map((panel) => panel.moments.map((m) => m[0])))));
  places.sort((a, b) => a - b);
  let at = 0, timer = null;

  // The state of a panel: for each rank and unit, of each slice, what it looks like.
  function rest(panel) {
    const grid = (whole, full) => Array.from({ length: panel.ranks }, (_, rank) =>
      panel.units.map(() => Array.from({ length: panel.slices }, (_, slice) =>
        whole || slice === rank ? full : "gone")));
    return { p: grid(panel.stage !== 3, "held"), g: grid(2 > panel.stage, "held"), o: grid(panel.stage === 0, "held"),
             used: new Set(), pass: [], micro: [], text: "Before the step.", time: 0 };
  }

  function own(panel, state, kind, rank, unit, look, others) {
    state[kind][rank][unit] = state[kind][rank][unit].map((old, slice) => slice === rank ? look : others(old));
  }

  function take(panel, state, moment) {
    const time = moment[1], rank = moment[2], what = moment[3], number = moment[4], begins = moment[5] === 1;
    const stage = panel.stage, all = (look) => Array(panel.slices).fill(look);
    const unit = what >= COMPUTE ? panel.units[number][0] : "";
    const trains = what >= COMPUTE ? panel.units[number][1] : false;
    const last = state.micro[rank] === panel.accumulation - 1;
    state.time = time;
    if (what === FORWARD || what === BACKWARD || what === FINISH) {
      state.pass[rank] = begins ? what : 0;
      if (what !== FINISH) state.micro[rank] = number;
      const names = ["", "the forward pass", "the backward pass", "the end of the step"];
      if (rank === 0) state.text = (begins ? "Rank 0 begins " : "Rank 0 has done ") + names[what] +
        (panel.accumulation > 1 ? (what === FINISH ? "" : " of micro-step " + (number + 1)) : "") + ".";
      if (what === FINISH) { if (!begins) panel.units.forEach((_, u) => {
        state.g[rank][u] = state.g[rank][u].map((old, slice) => stage > 1 ? (slice === rank ? "held" : "gone") : "held"); }); }
    } else if (what === COMPUTE) {
      const key = rank + "-" + number;
      if (begins) state.used.add(key); else state.used.delete(key);
      if (begins) { if (state.pass[rank] === BACKWARD) { if (trains) { if (state.g[rank][number].indexOf("made") === -1)
        state.g[rank][number] = all("made"); } } }
      if (rank === 0) { if (begins) state.text = "Rank 0 computes with " + unit + "."; }
    } else if (what === GATHER) {
      own(panel, state, "p", rank, number, "held", (old) => begins ? "coming" : "held");
      if (rank === 0) state.text = begins ? "Rank 0 gathers " + unit + " from all ranks."
                                          : "Rank 0 holds " + unit + " whole.";
    } else if (what === FREE) {
      if (begins) own(panel, state, "p", rank, number, "held", () => "gone");
      if (rank === 0) { if (begins) state.text = "Rank 0 frees the gathered " + unit + "."; }
    } else if (what === REDUCE) {
      if (begins) state.g[rank][number] = all("coming");
      else if (stage === 0) { if (last) state.g[rank][number] = all("sum");
        else own(panel, state, "g", rank, number, "sum", () => "held"); }
      else own(panel, state, "g", rank, number, "sum", () => stage === 1 ? "held" : "gone");
      if (rank === 0) state.text = begins ? "The ranks add up their gradients of " + unit + ", each its own slice."
        : (stage > 1 ? "Rank 0 keeps its slice of the sum of " + unit + " and frees the rest."
                     : "The gradients of " + unit + " are summed.");
    } else if (what === UPDATE) {
      state.o[rank][number] = state.o[rank][number].map((old) => old === "gone" ? old : begins ? "busy" : "held");
      if (!begins) { if (stage === 1 || stage === 2) own(panel, state, "p", rank, number, "held", () => "old"); }
      if (rank === 0) { if (begins) state.text = "Rank 0 updates what it owns of " + unit + "."; }
    }
  }

  function show(panel, index) {
    const state = rest(panel);
    for (const moment of panel.moments) {
      if (moment[0] > places[at]) break;
      take(panel, state, moment);
    }
    for (const kind of ["p", "g", "o"]) {
      state[kind].forEach((units, rank) => units.forEach((looks, unit) => {
        const box = by(kind + index + "-" + rank + "-" + unit);
        looks.forEach((look, slice) => { if (box.children[slice].className !== look) box.children[slice].className = look; });
        box.className = kind === "p" ? (state.used.has(rank + "-" + unit) ? "unit used" : "unit") : "unit";
      }));
    }
    by("now" + index).textContent = (state.time / 1000).toFixed(3) + " ms: " + state.text;
  }

  function go(to) {
    at = Math.min(Math.max(to, 0), places.length - 1);
    by("place").value = String(at);
    panels.forEach(show);
    if (at === places.length - 1) stop();
  }
  function stop() {
    if (timer !== null) clearInterval(timer);
    timer = null;
    by("play").textContent = "Play";
  }
  function play() {
    if (timer !== null) { stop(); return; }
    if (at === places.length - 1) go(0);
    by("play").textContent = "Pause";
    timer = setInterval(() => go(at + 1), 600 / Number(by("speed").value));
  }

  by("place").max = String(places.length - 1);
  by("place").addEventListener("input", (event) => { stop(); go(Number(event.target.value)); });
  by("play").addEventListener("click", play);
  by("back").addEventListener("click", () => { stop(); go(at - 1); });
  by("ahead").addEventListener("click", () => { stop(); go(at + 1); });
  by("speed").addEventListener("change", () => { if (timer !== null) { stop(); play(); } });
  by("player").hidden = false;
  go(0);
})();
)js";
}

}  // namespace zt
