#include "report/html_page.h"

namespace zt {

// No sign of it may need escaping in XML: no ampersand, no less-than. Colors of runs are told apart by readers with any
// kind of color vision (after Okabe and Ito, darkened or lightened to 3:1 against the ground); dashes, marks and
// textures say the same once more.
const char* page_style() {
  return R"css(
:root { color-scheme: light dark;
  --ground: #f7f7f5; --card: #ffffff; --ink: #1b1e23; --soft: #565c66; --rule: #dfdfda; --grid: #e9e9e5;
  --link: #0b5cad; --good: #0b6b46; --good-ground: #e7f4ee; --warn-ground: #fdf3e2; --warn: #8a4b00;
  --run0: #0072b2; --run1: #d55e00; --run2: #00805c; --run3: #b0488a; --run4: #4a4a4a; --run5: #7a5cc4; --run6: #8a6d00;
  --run7: #c2334d;
  --part0: #1f5fa8; --part1: #6ea4dc; --part2: #bcd8f2; --part3: #b4540a; --part4: #eb9a4c; --part5: #fadcb4;
  --part6: #9aa0a8; --edge: #2b3038; --texture: rgba(20, 24, 32, .62); }
@media (prefers-color-scheme: dark) { :root {
  --ground: #101317; --card: #171b21; --ink: #e8eaed; --soft: #a8b0bb; --rule: #2b313a; --grid: #262c34;
  --link: #7cb8f5; --good: #6fd6a8; --good-ground: #12291f; --warn-ground: #2d2210; --warn: #f0b760;
  --run0: #5cb8f0; --run1: #ff9448; --run2: #2fcf9f; --run3: #ec9ccb; --run4: #d2d6dc; --run5: #b9a4f2; --run6: #e3cd4b;
  --run7: #ff8a96;
  --part0: #3f86d6; --part1: #7fb4ec; --part2: #cfe3f8; --part3: #cc6a1e; --part4: #f0a860; --part5: #fbe3c4;
  --part6: #8b929c; --edge: #0c0f13; --texture: rgba(8, 10, 14, .7); } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 1240px; padding: 32px 24px 48px; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 16px; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 21px; margin: 44px 0 14px; line-height: 1.25; }
h3 { font-size: 16px; margin: 0; line-height: 1.3; }
p { margin: 0; }
a { color: var(--link); }
.kind { color: var(--soft); font-size: 14px; margin: 0 0 4px; }
.definitions { position: absolute; }
.verdict { background: var(--good-ground); border-left: 4px solid var(--good); border-radius: 4px; padding: 12px 16px;
  margin: 0 0 16px; max-width: 80ch; }
.verdict p + p { margin-top: 8px; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 20px; padding: 0; margin: 16px 0 0; }
nav a { display: inline-block; padding: 4px 0; }
.blocks { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 18px; }
.blocks details, .blocks .text, .blocks .remark, .blocks .scroll, #loss, #memory-by-rank, #step-time, #who-holds-what { grid-column: 1 / -1; }
.text { color: var(--soft); }
.remark { background: var(--warn-ground); border-left: 4px solid var(--warn); border-radius: 4px; padding: 10px 14px;
  overflow-wrap: anywhere; }
figure { margin: 0; padding: 18px 20px 14px; background: var(--card); border: 1px solid var(--rule); border-radius: 10px;
  min-width: 0; }
figcaption p { color: var(--soft); font-size: 14px; margin-top: 2px; max-width: 90ch; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 18px; padding: 0; margin: 10px 0 0; font-size: 14px; }
.legend li { display: flex; align-items: center; gap: 7px; overflow-wrap: anywhere; }
.legend svg { flex: none; }
.hint { color: var(--soft); font-style: italic; }
.area { padding: 16px 14px 42px 58px; }
.bars { padding: 8px 72px 4px 58px; }
.area svg { display: block; overflow: visible; }
.area text { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
.area text.whole { fill: var(--ink); }
.area .exponent { font-size: 9.5px; }
.group { font-size: 14px; display: flex; align-items: center; gap: 7px; margin: 12px -58px 4px -58px;
  overflow-wrap: anywhere; }
.group svg { flex: none; }
.grid { stroke: var(--grid); }
.tick, .base { stroke: var(--soft); }
.line { fill: none; stroke: var(--c, var(--ink)); stroke-width: 2; stroke-linejoin: round; stroke-linecap: butt;
  vector-effect: non-scaling-stroke; }
.dash0 { stroke-linecap: round; }
.dash1 { stroke-dasharray: 9 5; }
.dash2 { stroke-dasharray: 3 4; }
.dash3 { stroke-dasharray: 13 4 3 4; }
.dash4 { stroke-dasharray: 6 3 2 3 2 3; }
.shared { stroke-width: 2.6; }
.evaluated { stroke-width: 1; stroke-dasharray: none; }
.mark { fill: var(--c); stroke: var(--card); stroke-width: .22; stroke-dasharray: none; }
.cross { fill: none; stroke: var(--ink); stroke-width: 1.6; }
.level { fill: none; stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 5 4; }
.formula { stroke: var(--ink); stroke-width: 2.5; }
.halo { stroke: var(--card); stroke-width: 5; }
.part { stroke: var(--edge); stroke-width: 1; }
.alone { fill: var(--c); stroke: none; }
.stripes, .dots { stroke: var(--texture); pointer-events: none; }
.stripes { stroke-dasharray: 1.2 3.8; stroke-dashoffset: -2; }
.dots { stroke-dasharray: 0 5; stroke-dashoffset: -3; stroke-linecap: round; }
.run0 { --c: var(--run0); } .run1 { --c: var(--run1); } .run2 { --c: var(--run2); } .run3 { --c: var(--run3); }
.run4 { --c: var(--run4); } .run5 { --c: var(--run5); } .run6 { --c: var(--run6); } .run7 { --c: var(--run7); }
.part0 { fill: var(--part0); } .part1 { fill: var(--part1); } .part2 { fill: var(--part2); } .part3 { fill: var(--part3); }
.part4 { fill: var(--part4); } .part5 { fill: var(--part5); } .part6 { fill: var(--part6); }
.player { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; margin: 12px 0 0; font-size: 14px; }
.player[hidden] { display: none; }
.player button, .player select { font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--soft);
  border-radius: 6px; padding: 5px 12px; min-height: 32px; }
.player button:hover { border-color: var(--link); }
.player label { display: flex; align-items: center; gap: 8px; }
.player label:nth-of-type(1) { flex: 1 1 260px; }
.player input { flex: 1; min-width: 120px; accent-color: var(--link); }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 14px; margin-top: 14px; }
.panel { border: 1px solid var(--rule); border-radius: 8px; padding: 12px 14px; min-width: 0; }
.panel-name { font-weight: 600; overflow-wrap: anywhere; }
.rest { color: var(--soft); font-size: 14px; }
.now { font-size: 14px; min-height: 3em; margin-top: 8px; font-variant-numeric: tabular-nums; }
.holders { display: grid; grid-template-columns: auto repeat(3, minmax(0, 1fr)); gap: 6px 12px; margin-top: 8px;
  align-items: center; }
.holders b { font-size: 13px; font-weight: 400; color: var(--soft); }
.holders b:first-child { grid-column: 2; }
.rank { font-size: 13px; color: var(--soft); white-space: nowrap; }
.units { display: flex; gap: 3px; min-width: 0; }
.unit { display: inline-flex; flex: 1 1 0; min-width: 5px; max-width: 60px; height: 26px; border: 1px solid var(--soft);
  border-radius: 2px; overflow: hidden; }
.legend .unit { width: 22px; height: 18px; flex: none; }
.used { outline: 3px solid var(--run1); outline-offset: 0; }
.unit i { flex: 1 1 0; min-width: 0; }
.unit i.held { background: var(--part1); }
.unit i.gone { background: transparent; }
.unit i.coming { background: repeating-linear-gradient(45deg, var(--part1) 0 3px, var(--card) 3px 6px); }
.unit i.made { background: var(--part4); }
.unit i.sum { background: var(--part3); }
.unit i.old { background: repeating-linear-gradient(90deg, var(--part2) 0 2px, var(--part6) 2px 4px); }
.unit i.busy { background: var(--ink); }
.scroll { overflow-x: auto; }
.words tbody th { white-space: nowrap; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: 0 0 8px; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { padding: 6px 14px; border-bottom: 1px solid var(--rule); vertical-align: top; text-align: left; }
th:first-child, td:first-child { padding-left: 0; }
thead th { font-weight: 600; border-bottom-color: var(--soft); overflow-wrap: anywhere; min-width: 9ch; }
tbody th { font-weight: 400; color: var(--soft); }
.numbers td, .numbers thead th + th, .numbers thead td + th { text-align: right; }
.words td { overflow-wrap: anywhere; font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px; }
details { min-width: 0; }
summary { color: var(--link); cursor: pointer; font-size: 14px; padding: 6px 0; }
details .scroll { margin-top: 6px; }
pre { margin: 6px 0 0; padding: 14px 16px; background: var(--card); border: 1px solid var(--rule); border-radius: 8px;
  overflow: auto; max-height: 70vh; font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 3px; }
footer { color: var(--soft); font-size: 14px; margin-top: 44px; border-top: 1px solid var(--rule); padding-top: 14px; }
@media (max-width: 560px) {
  body { padding: 20px 14px 36px; }
  h1 { font-size: 24px; }
  figure { padding: 14px 14px 10px; }
  .area { padding-left: 48px; padding-right: 8px; }
  .bars { padding-right: 62px; }
  .group { margin-left: -48px; }
  tbody th { min-width: 11ch; }
  th, td { padding: 6px 9px; }
  thead th { min-width: 7ch; }
}
@media print {
  :root { color-scheme: light; --ground: #ffffff; --card: #ffffff; --ink: #000000; --soft: #3c4048; --rule: #c4c4c0;
    --grid: #dedede; --link: #000000; --good-ground: #ffffff; --warn-ground: #ffffff; --good: #0b6b46; --warn: #8a4b00;
    --run0: #0072b2; --run1: #d55e00; --run2: #00805c; --run3: #b0488a; --run4: #4a4a4a; --run5: #7a5cc4;
    --run6: #8a6d00; --run7: #c2334d;
    --part0: #1f5fa8; --part1: #6ea4dc; --part2: #bcd8f2; --part3: #b4540a; --part4: #eb9a4c; --part5: #fadcb4;
    --part6: #9aa0a8; --edge: #2b3038; --texture: rgba(20, 24, 32, .62); }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { padding: 0; max-width: none; font-size: 12px; }
  nav, details, .player, .now { display: none; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  .scroll { overflow: visible; }
}
)css";
}

}  // namespace zt
