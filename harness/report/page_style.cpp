#include "harness/report/page_style.h"

namespace assay::report {

// Pictures keep a white card in both modes: their ink is dark. Wide things scroll in their own box,
// so that the page itself never scrolls sideways.
const char* const kPageStyle = R"css(
:root{--paper:#fff;--ink:#1f2328;--faint:#59636e;--line:#d1d9e0;--soft:#f6f8fa;--bar:#0072b2;
--better:#1a7f37;--worse:#cf222e;--same:#0969da;--open:#9a6700;--bad:#8250df}
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--faint:#9198a1;
--line:#3d444d;--soft:#151b23;--bar:#56b4e9;--better:#3fb950;--worse:#f85149;--same:#58a6ff;
--open:#d29922;--bad:#bc8cff}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1160px;padding:1.2rem 1rem 4rem;background:var(--paper);
color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:.2rem 0}
h2{font-size:1.2rem;margin:2.2rem 0 .7rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}
p{margin:.5rem 0}
.stamp{display:inline-block;font-size:.75rem;font-weight:700;letter-spacing:.06em;
padding:.15rem .6rem;border-radius:1rem;border:1.5px solid currentColor;color:var(--open)}
.stamp.registered{color:var(--same)}
.question{color:var(--faint)}
.headline{font-size:1.25rem;font-weight:600;line-height:1.35;border-left:4px solid var(--bar);
padding:.2rem 0 .2rem .9rem;margin:1rem 0}
.scroll+.scroll{margin-top:.8rem}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:8px}
table{border-collapse:separate;border-spacing:0;width:100%;font-size:.86rem;
font-variant-numeric:tabular-nums}
th,td{padding:.4rem .55rem;text-align:left;white-space:nowrap}
th{background:var(--soft);font-weight:600;border-bottom:1px solid var(--line);
cursor:help}
td{border-top:1px solid var(--line)}
tbody tr:first-child td{border-top:0}
.right{text-align:right}
td.name{font-weight:600}
tr.rule td{border-top:2px solid var(--faint);color:var(--faint);font-size:.78rem;
padding:.15rem .55rem}
tr.reference td{color:var(--faint)}
.bar{display:block;width:6rem;height:.8rem;background:var(--soft);border-radius:2px}
.bar i{display:block;height:100%;background:var(--bar);border-radius:2px}
.bar.beyond i{clip-path:polygon(0 0,92% 0,100% 50%,92% 100%,0 100%)}
ul.statements{list-style:none;margin:0;padding:0}
ul.statements li{padding:.45rem 0 .45rem 1.9rem;position:relative;border-top:1px solid var(--line)}
ul.statements li:first-child{border-top:0}
ul.statements b{display:block;font-weight:600}
ul.statements small{color:var(--faint)}
.mark{position:absolute;left:0;top:.5rem;width:1.35rem;height:1.35rem;line-height:1.35rem;
text-align:center;border-radius:50%;color:var(--paper);font-weight:700;background:var(--open)}
.better .mark{background:var(--better)}.worse .mark{background:var(--worse)}
.same .mark{background:var(--same)}.bad .mark{background:var(--bad)}
figure{margin:0 0 1.2rem;background:#fff;border:1px solid var(--line);border-radius:8px;
overflow:hidden}
figure .scroll{border:0;border-radius:0}
figure svg{display:block;width:100%;max-width:100%;height:auto}
figcaption{background:var(--soft);color:var(--faint);font-size:.78rem;padding:.45rem .8rem;
overflow-wrap:anywhere}
.pairs td{white-space:normal;overflow-wrap:anywhere;vertical-align:top}
.pairs td:first-child{white-space:nowrap;color:var(--faint)}
pre{background:var(--soft);border:1px solid var(--line);border-radius:8px;padding:.8rem;
overflow-x:auto;font-size:.85rem}
details{border:1px solid var(--line);border-radius:8px;margin:.7rem 0;padding:0 .8rem}
summary{cursor:pointer;padding:.6rem 0;font-weight:600}
details[open]{padding-bottom:.8rem}
code{overflow-wrap:anywhere}
@media (max-width:700px){.scroll::before{content:"scrolls sideways \2192";position:sticky;left:0;
display:inline-block;padding:.15rem .55rem;font-size:.72rem;color:var(--faint)}
figure .scroll::before{color:#59636e}}
@media (max-width:600px){td{padding:.35rem .5rem}td.name+td{white-space:normal}
h1{font-size:1.4rem}.headline{font-size:1.1rem}
.pairs td:first-child{white-space:normal}.pairs td{padding:.35rem .45rem}
td.name{position:sticky;left:0;background:var(--paper);white-space:normal;min-width:6.5rem}
figure svg{width:36rem;max-width:none}}
@media print{:root{--paper:#fff;--ink:#000;--faint:#444;--line:#999;--soft:#fff}
body{max-width:none;padding:0;font-size:11px}.scroll{overflow:visible}table{font-size:7.5px}
th,td{padding:2px 3px;white-space:normal}.bar{width:4rem;print-color-adjust:exact;
-webkit-print-color-adjust:exact}figure svg{max-width:640px}
figure,li,tr{break-inside:avoid}}
)css";

}  // namespace assay::report
