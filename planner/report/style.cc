#include "planner/report/style.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mergeplan {
namespace {

struct Rgb {
  double r, g, b;
};

std::string Mix(Rgb from, Rgb to, double share) {
  const auto channel = [share](double a, double b) {
    return static_cast<int>(a + share * (b - a) + 0.5);
  };
  return absl::StrFormat("#%02x%02x%02x", channel(from.r, to.r), channel(from.g, to.g),
                         channel(from.b, to.b));
}

// Two straight pieces through a middle colour, so that the ends differ in hue as well.
std::string Ramp(Rgb first, Rgb middle, Rgb last, int shade) {
  const double at = static_cast<double>(shade) / (kRoundShades - 1);
  return at < 0.5 ? Mix(first, middle, 2 * at) : Mix(middle, last, 2 * at - 1);
}

std::string DarkGroundColour(int shade) {
  return Ramp({52, 78, 106}, {78, 137, 196}, {214, 233, 255}, shade);
}

std::string ShadeRules(std::string (*colour)(int), const std::string& indent) {
  std::string out;
  for (int k = 0; k < kRoundShades; ++k) {
    absl::StrAppend(&out, indent, ".a", k, "{stroke:", colour(k), "}\n", indent, ".f", k,
                    "{fill:", colour(k), "}\n");
  }
  return out;
}

constexpr char kPage[] = R"(
:root{--ground:#fff;--card:#f6f8fa;--text:#1b2430;--soft:#566270;--line:#d7dde4;--grid:#e9edf1;
--one:#1f5fa8;--two:#c2571a;--band-one:#1f5fa833;--band-two:#c2571a33;--good:#1d7a46;--bad:#b3261e}
@media screen and (prefers-color-scheme:dark){:root{--ground:#12171d;--card:#1a2129;--text:#dfe6ed;
--soft:#9aa7b4;--line:#36414d;--grid:#252e38;--one:#74b0f0;--two:#f0975a;--band-one:#74b0f03d;
--band-two:#f0975a3d;--good:#6cc990;--bad:#ff8a80;color-scheme:dark}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--text);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:57rem;margin:0 auto;padding:2.2rem 1rem 4rem}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .9rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;line-height:1.3;margin:3rem 0 .6rem;padding-top:.9rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.4rem 0 .3rem}
p{margin:.5rem 0 .8rem;max-width:46rem}
.verdict{font-size:1.2rem;line-height:1.45;max-width:50rem;margin:0 0 .8rem}
.bad{color:var(--bad)}
.soft,figcaption,.legend{color:var(--soft)}
figure{margin:1rem 0}
figcaption{font-size:.9rem;line-height:1.45;margin-top:.4rem;max-width:46rem}
.legend{font-size:.9rem;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;margin:.2rem 0}
.key{display:inline-flex;align-items:center;gap:.45rem}
.key svg{width:22px;height:12px;flex:none;overflow:visible}
code,.path{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.88em;
overflow-wrap:anywhere}
pre{background:var(--card);padding:.7rem .9rem;border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere;
font-size:.85rem;line-height:1.45;margin:.5rem 0}
.scroll{overflow-x:auto;margin:.8rem 0;border:1px solid var(--line);border-radius:6px}
table{border-collapse:collapse;width:100%;font-size:.88rem}
th,td{padding:.42rem .6rem;text-align:right;vertical-align:baseline;border-top:1px solid var(--grid);white-space:nowrap}
thead th{border-top:0;border-bottom:1px solid var(--line);background:var(--card);font-weight:600;
font-size:.8rem;line-height:1.25;vertical-align:bottom;white-space:normal}
th:first-child,td:first-child{text-align:left}
tbody th{font-weight:600}
tr.best th::after{content:" ◂ best";color:var(--good);font-weight:400;font-size:.85em}
td{font-variant-numeric:tabular-nums}
tr.words th,tr.words td{white-space:normal}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.35rem 1.2rem;margin:.6rem 0}
dt{color:var(--soft)}
dd{margin:0;min-width:0;overflow-wrap:anywhere}
details{margin:.6rem 0}
summary{cursor:pointer;color:var(--one);overflow-wrap:anywhere}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(15.5rem,1fr));gap:1.1rem 1.4rem;margin:1rem 0}
.grid figure{margin:0;min-width:0}
.grid figcaption{margin-top:.1rem}
.grid h3{margin:0;overflow-wrap:anywhere}
.beside{display:grid;grid-template-columns:minmax(0,26rem) minmax(0,1fr);gap:1.6rem;align-items:start}
.strip{display:grid;grid-template-columns:10.5rem minmax(0,1fr);gap:.2rem 1rem;align-items:center;margin:.55rem 0}
.strip img{width:100%;max-width:52rem;height:auto;display:block;border-radius:3px}
.strip b{display:block;overflow-wrap:anywhere}
.strip span{font-size:.82rem;line-height:1.3;color:var(--soft);display:block}
.heat{width:100%;height:auto;display:block;image-rendering:pixelated;border:1px solid var(--line)}
svg.wide{width:100%;max-width:52rem;height:auto;display:block;overflow:visible}
svg.small{width:100%;max-width:24rem;height:auto;display:block;overflow:visible}
svg text{fill:var(--text);font-family:inherit;font-size:11px}
svg .tick,svg .name,svg .note{fill:var(--soft)}
svg .label{font-weight:600}
svg .halo{paint-order:stroke;stroke:var(--ground);stroke-width:4px;stroke-linejoin:round}
svg .gridline{stroke:var(--grid);stroke-width:1;fill:none}
svg .axis{stroke:var(--soft);stroke-width:1;fill:none}
svg .rule{stroke:var(--text);stroke-width:1.2;stroke-dasharray:5 4;fill:none}
svg.bar{max-width:none}
svg .equal{stroke:var(--soft);stroke-width:1;stroke-dasharray:4 3}
svg .row{stroke:var(--line);stroke-width:1}
svg .one{stroke:var(--one);fill:none;stroke-width:1.8;stroke-linejoin:round}
svg .two{stroke:var(--two);fill:none;stroke-width:1.8;stroke-linejoin:round}
svg .three{stroke:var(--soft);fill:none;stroke-width:1.4;stroke-linejoin:round}
svg .band-one{fill:var(--band-one);stroke:none}
svg .band-two{fill:var(--band-two);stroke:none}
svg .dot-one{fill:var(--one);stroke:none}
svg .dot-two{fill:var(--two);stroke:none}
svg .ring{fill:var(--ground);stroke:var(--one);stroke-width:2}
svg .spread{stroke:var(--one);stroke-width:5;stroke-opacity:.35}
svg .achieved{fill:var(--two);stroke:var(--ground);stroke-width:1}
svg .cloud{stroke:var(--one);stroke-width:4.4;stroke-linecap:round;stroke-opacity:.5;fill:none}
svg .under{stroke:var(--soft);stroke-width:3.4;stroke-opacity:.35}
svg .point{fill:var(--one);fill-opacity:.7}
svg .arc{fill:none;stroke-linecap:butt}
svg .child{fill:var(--ground);stroke-width:1}
svg .base{stroke:var(--soft);stroke-width:1}
svg .level{fill:var(--soft)}
svg .block{stroke:var(--two);stroke-width:2}
@media(max-width:56rem){svg.wide text{font-size:13px}}
@media(max-width:40rem){svg.wide text{font-size:17px}.beside{grid-template-columns:1fr;gap:.4rem}
.strip{grid-template-columns:1fr}.strip b,.strip span{display:inline}h1{font-size:1.45rem}.verdict{font-size:1.08rem}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}main{padding-top:1.2rem}
th,td{padding:.4rem .5rem}}
@media print{body{font-size:10.5pt}main{max-width:none;padding:0}h2{margin-top:1.6rem}
figure,.strip,tr{break-inside:avoid}h2,h3{break-after:avoid}.scroll{overflow:visible;border:0}
pre{border:1px solid var(--line)}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)";

}  // namespace

std::string RoundColour(int shade) {
  return Ramp({168, 205, 236}, {47, 117, 181}, {10, 24, 62}, shade);
}

std::string RoundClass(int round, int rounds) {
  const int shade =
      rounds <= 1 ? kRoundShades - 1 : (round - 1) * (kRoundShades - 1) / (rounds - 1);
  return absl::StrCat("a", std::clamp(shade, 0, kRoundShades - 1));
}

std::string PageCss() {
  return absl::StrCat(kPage, ShadeRules(RoundColour, ""),
                      "@media screen and (prefers-color-scheme:dark){\n",
                      ShadeRules(DarkGroundColour, ""), "}\n");
}

std::string ArcCss() {
  return absl::StrCat(
      "text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#1b2430}\n"
      ".tick,.name,.note{fill:#566270}\n.arc{fill:none}\n.base{stroke:#566270;stroke-width:1}\n"
      ".level{fill:#566270}\n.child{fill:#ffffff;stroke-width:1}\n"
      ".block{stroke:#c2571a;stroke-width:2}\n",
      ShadeRules(RoundColour, ""));
}

}  // namespace mergeplan
