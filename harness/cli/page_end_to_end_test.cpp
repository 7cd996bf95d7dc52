// End to end: the pages of the recorded results in a browser (headless Chromium), as wide as a
// phone and as a screen, light and dark, and printed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Runs in the page itself when all is loaded. What is inside of a box that scrolls may be wider
// than the page; nothing else may. Contrast is WCAG 2's ratio of relative luminances.
constexpr const char* kProbe = R"html(<script>addEventListener('load',()=>{
const channels=c=>c.match(/[\d.]+/g).map(Number);
const luminance=c=>{const [r,g,b]=channels(c).map(v=>{v/=255;
  return v<=.03928?v/12.92:((v+.055)/1.055)**2.4});return .2126*r+.7152*g+.0722*b};
const ground=e=>{for(;e;e=e.parentElement){const c=getComputedStyle(e).backgroundColor;
  const v=channels(c);if(v.length<4||v[3]>0)return c}return 'rgb(255,255,255)'};
const all=[...document.querySelectorAll('body *')].filter(e=>e.checkVisibility()&&
  !(e.closest('svg')&&e.tagName!=='svg')&&e.tagName!=='SCRIPT');
let contrast=99,faintest='';
for(const e of all){
  if(![...e.childNodes].some(n=>n.nodeType===3&&n.textContent.trim()))continue;
  const a=luminance(getComputedStyle(e).color),b=luminance(ground(e));
  const ratio=(Math.max(a,b)+.05)/(Math.min(a,b)+.05);
  if(ratio<contrast){contrast=ratio;faintest=e.tagName+': '+e.textContent.slice(0,60)}}
const boxed=e=>{while((e=e.parentElement))if(getComputedStyle(e).overflowX!=='visible')return true;
  return false};
const outside=all.filter(e=>e.getBoundingClientRect().right>innerWidth+1&&!boxed(e))
  .map(e=>e.tagName+'.'+e.className);
parent.postMessage(JSON.stringify({width:innerWidth,contrast,faintest,outside,
  requests:performance.getEntriesByType('resource').map(e=>e.name),
  dark:matchMedia('(prefers-color-scheme: dark)').matches,
  title:document.title,text:document.body.innerText.length,
  pictures:[...document.querySelectorAll('figure svg')]
    .map(e=>e.getBoundingClientRect()).filter(r=>r.width>300&&r.height>100).length}),'*')
})</script>)html";

class Page : public EndToEnd {
 protected:
  void SetUp() override {
    if (shell("command -v chromium").status != 0) {
      GTEST_SKIP() << "there is no chromium here: pages are not looked at (scripts/setup has it)";
    }
  }

  /// Chromium without a profile, a display or a sandbox (tests may run as root).
  [[nodiscard]] Finished browser(const std::string& arguments) const {
    return shell(
        "timeout 120 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir='" +
        (directory_ / "profile").string() + "' --virtual-time-budget=10000 " + arguments);
  }

  /// What the probe found in `page`, shown in a frame of that width.
  [[nodiscard]] json probe(const fs::path& page, int width, bool dark) const {
    write_file(directory_ / "probed.html", read_file(page) + kProbe);
    write_file(directory_ / "frame.html",
               "<!doctype html><pre id=out></pre><iframe src=probed.html style=\"border:0;"
               "height:800px;width:" +
                   std::to_string(width) +
                   "px\"></iframe><script>addEventListener('message',"
                   "e=>out.textContent=btoa(unescape(encodeURIComponent(e.data))))</script>");
    const Finished shown =
        browser(std::string("--blink-settings=preferredColorScheme=") + (dark ? "0" : "1") +
                " --dump-dom 'file://" + (directory_ / "frame.html").string() +
                "' | sed -n 's/.*<pre id=\"out\">\\([A-Za-z0-9+/=]*\\)<.*/\\1/p' | base64 -d");
    EXPECT_FALSE(shown.out.empty()) << "the page did not answer: " << shown.err;
    return json::parse(shown.out, nullptr, false);
  }

  void expect_readable(const fs::path& page, std::size_t pictures) const {
    for (const int width : {390, 1200}) {
      for (const bool dark : {false, true}) {
        SCOPED_TRACE(page.string() + " at " + std::to_string(width) + (dark ? " dark" : " light"));
        const json seen = probe(page, width, dark);
        ASSERT_TRUE(seen.is_object());
        EXPECT_EQ(seen["width"], width);
        EXPECT_EQ(seen["dark"], dark) << "the mode was not shown, so nothing is known about it";
        EXPECT_EQ(seen["outside"], json::array()) << "the page scrolls sideways";
        EXPECT_EQ(seen["requests"], json::array()) << "the page is not self-contained";
        EXPECT_GE(seen["contrast"].get<double>(), 4.5) << seen["faintest"];
        EXPECT_GE(seen["pictures"].get<std::size_t>(), pictures);
        EXPECT_GT(seen["text"].get<std::size_t>(), 400U);
      }
    }
  }
};

TEST_F(Page, of_a_run_is_readable_on_a_phone_and_a_screen_in_both_modes) {
  const Finished made =
      assay("report '" ASSAY_SOURCE_FOLDER "/ledgers/durable-commits' --format html --out page");
  ASSERT_EQ(made.status, 0) << made.err;
  expect_readable(directory_ / "page" / "report.html", 5);
}

TEST_F(Page, over_all_ledgers_is_readable_on_a_phone_and_a_screen_in_both_modes) {
  const Finished made = shell("cd '" ASSAY_SOURCE_FOLDER "' && assay report --all --out '" +
                              (directory_ / "site").string() + "'");
  ASSERT_EQ(made.status, 0) << made.err;
  expect_readable(directory_ / "site" / "index.html", 0);
}

TEST_F(Page, of_a_run_prints) {
  const Finished made =
      assay("report '" ASSAY_SOURCE_FOLDER "/ledgers/durable-commits' --format html --out page");
  ASSERT_EQ(made.status, 0) << made.err;
  const Finished printed = browser("--no-pdf-header-footer --print-to-pdf=page.pdf 'file://" +
                                   (directory_ / "page" / "report.html").string() + "'");
  EXPECT_TRUE(read_file(directory_ / "page.pdf").starts_with("%PDF-")) << printed.err;
}

}  // namespace
}  // namespace assay::end_to_end
