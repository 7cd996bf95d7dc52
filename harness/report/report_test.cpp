#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "harness/report/content.h"
#include "harness/report/figures.h"
#include "harness/report/fixture.h"
#include "harness/report/html.h"
#include "harness/report/json.h"
#include "harness/report/markdown.h"
#include "harness/report/terminal.h"
#include "harness/report/write_report.h"

namespace assay::report {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ReportModel model_of(const fixture::Shape& shape, const std::string& directory) {
  const fixture::Made made = fixture::write(shape, directory);
  Result<ReportModel> model = load_report(made.ledger, "");
  EXPECT_TRUE(model) << model.error().message();
  return std::move(*model);
}

class Report : public ::testing::Test {
 protected:
  Report() { shape_.trials = 4; }
  TemporaryDirectory directory_;
  fixture::Shape shape_ = fixture::five_rows();
};

TEST_F(Report, a_terminal_of_any_width_holds_every_line_of_the_table) {
  const ReportModel model = model_of(shape_, directory_.path());
  for (const unsigned columns : {80U, 120U, 200U}) {
    const std::string text = terminal_report(model, false, columns);
    std::istringstream lines(text.substr(0, text.find("Comparisons")));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), columns) << line;
    }
    for (const char* heading : {"barriers/op", "p99.9", "B/entry", "drain", "of raw-file"}) {
      EXPECT_TRUE(contains(text, heading)) << heading << " at " << columns;
    }
  }
}

TEST_F(Report, a_terminal_without_colour_gets_no_escape_sequences) {
  const ReportModel model = model_of(shape_, directory_.path());
  EXPECT_FALSE(contains(terminal_report(model, false, 100), "\033"));
  EXPECT_TRUE(contains(terminal_report(model, true, 100), "\033[1;31m-\033[0m"));
}

TEST_F(Report, every_format_says_losses_and_hashes_and_checks) {
  const ReportModel model = model_of(shape_, directory_.path());
  for (const std::string& text : {terminal_report(model, false, 400),
                                  markdown_report(model, {}, {}), html_report(model, {}, {})}) {
    EXPECT_TRUE(contains(text, "REGISTERED"));
    EXPECT_TRUE(contains(text, "sqlite is 0.8")) << "the loss of sqlite to rocksdb";
    EXPECT_TRUE(contains(text, model.head_hash));
    EXPECT_TRUE(contains(text, "A/A: "));
    EXPECT_TRUE(contains(text, "Smallest effect that 4 trials an arm can see: 1.07x"));
    EXPECT_TRUE(contains(text, "the 2 % of the plan would have taken 50 trials an arm"));
    EXPECT_TRUE(contains(text, "its cache may be volatile"));
    EXPECT_TRUE(contains(text, "rocksdb leads with "));
  }
}

TEST_F(Report, an_arm_that_is_not_beaten_is_said_to_be_so) {
  ReportModel model = model_of(shape_, directory_.path());
  for (Comparison& comparison : model.comparisons) {
    if (comparison.a == "sqlite" && comparison.b == "rocksdb") comparison.verdict = "inconclusive";
  }
  const std::string headline = make_content(model).headline;
  EXPECT_TRUE(contains(headline, "not shown to differ from sqlite")) << headline;
}

TEST_F(Report, an_arm_about_which_nothing_is_declared_is_not_said_to_be_equal) {
  ReportModel model = model_of(shape_, directory_.path());
  std::erase_if(model.comparisons, [](const Comparison& comparison) {
    return comparison.a == "sqlite" && comparison.b == "rocksdb";
  });
  const std::string headline = make_content(model).headline;
  EXPECT_FALSE(contains(headline, "differ from sqlite")) << headline;
  EXPECT_TRUE(contains(headline, "the plan compares it with none of sqlite")) << headline;
}

TEST_F(Report, a_disqualified_arm_is_last_and_has_no_figure) {
  ReportModel model = model_of(shape_, directory_.path());
  model.rows[0].disqualified = true;
  model.rows[0].reason = "3 keys are missing";
  const Content content = make_content(model);
  EXPECT_EQ(content.table.lines[0].cells[2], "disqualified");
  EXPECT_EQ(content.checks[0].sentence, "rocksdb is disqualified");
  EXPECT_EQ(content.checks[0].detail, "3 keys are missing");
  EXPECT_FALSE(contains(content.headline, "rocksdb"));
  EXPECT_EQ(figure_set(model).arms.size(), model.rows.size() - 1);
}

TEST_F(Report, of_unequal_durability_says_which_class_the_limit_is_in) {
  ReportModel model = model_of(shape_, directory_.path());
  EXPECT_TRUE(contains(terminal_report(model, false, 400), "of raw-file "));
  model.mixed_durability = true;
  EXPECT_TRUE(contains(terminal_report(model, false, 400), "of raw-file (power)"));
}

TEST_F(Report, writes_small_p_values_without_two_signs_of_comparison) {
  ReportModel model = model_of(shape_, directory_.path());
  model.comparisons[0].p_adjusted.value = 1e-20;
  const std::string text = terminal_report(model, false, 400);
  EXPECT_TRUE(contains(text, "adjusted p < 1e-15 (p = 3e-8 "));
  EXPECT_FALSE(contains(text, "= <"));
}

TEST_F(Report, names_cannot_break_out_of_any_format) {
  shape_.experiment = "<b>bold</b> & \"quoted\"";
  shape_.arms[0].arm = "a<script>alert('x')</script>&\"|`*\033[2J";
  const ReportModel model = model_of(shape_, directory_.path());
  const std::string html = html_report(model, {}, {"a <note>"});
  EXPECT_FALSE(contains(html, "<script"));
  EXPECT_FALSE(contains(html, "<b>bold"));
  EXPECT_TRUE(contains(html, "a&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;|`*"));
  const std::string markdown = markdown_report(model, {}, {});
  EXPECT_FALSE(contains(markdown, "<script"));
  EXPECT_TRUE(contains(markdown, "&amp;\"\\|\\`\\*"));
  EXPECT_FALSE(contains(terminal_report(model, false, 300), "\033"));
}

TEST_F(Report, the_page_needs_nothing_from_elsewhere) {
  const ReportModel model = model_of(shape_, directory_.path());
  ASSERT_TRUE(write_report(model, directory_.path() + "/out"));
  const std::string html = bytes_of(directory_.path() + "/out/report.html");
  EXPECT_TRUE(contains(html, "<svg"));
  EXPECT_FALSE(contains(html, "<script"));
  EXPECT_FALSE(contains(html, "<link"));
  EXPECT_FALSE(contains(html, "<img"));
  EXPECT_FALSE(contains(html, "src="));
  EXPECT_FALSE(contains(html, "@import"));
  EXPECT_FALSE(contains(html, "xlink:href=\"http"));
}

TEST_F(Report, a_picture_is_as_wide_as_the_page_and_no_wider) {
  const std::string html = html_report(model_of(shape_, directory_.path()), {}, {});
  EXPECT_TRUE(contains(html, "figure svg{display:block;width:100%;max-width:100%"));
  EXPECT_FALSE(contains(html, "figure svg{min-width"));
  EXPECT_FALSE(contains(html, ".pictures figure{max-width"));
}

TEST_F(Report, two_writings_give_the_same_bytes) {
  const ReportModel model = model_of(shape_, directory_.path());
  const Result<WrittenReport> first = write_report(model, directory_.path() + "/first");
  const Result<WrittenReport> second = write_report(model, directory_.path() + "/second");
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE(second) << second.error().message();
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory_.path() + "/first")) {
    if (!entry.is_regular_file()) continue;
    const fs::path other = fs::path(directory_.path()) / "second" /
                           fs::relative(entry.path(), directory_.path() + "/first");
    EXPECT_EQ(bytes_of(entry.path()), bytes_of(other)) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 2U + 4U * first->plots.size());
  EXPECT_EQ(first->plots.size(), 7U);
}

TEST_F(Report, a_second_writing_replaces_the_first_and_leaves_no_temporary) {
  const ReportModel model = model_of(shape_, directory_.path());
  const std::string out = directory_.path() + "/out";
  ASSERT_TRUE(write_report(model, out));
  ASSERT_TRUE(write_report(model, out));
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(out)) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, (std::set<std::string>{"plots", "report.html", "report.md"}));
}

TEST_F(Report, a_folder_with_other_things_in_it_is_not_replaced) {
  const ReportModel model = model_of(shape_, directory_.path());
  const std::string out = directory_.path() + "/precious";
  fs::create_directory(out);
  std::ofstream(out + "/thesis.txt") << "years of work";
  const Result<plots::Drawn> drawn = write_plots(model, out);
  ASSERT_FALSE(drawn);
  EXPECT_EQ(drawn.error().kind(), ErrorKind::bad_input);
  EXPECT_EQ(bytes_of(out + "/thesis.txt"), "years of work");
}

TEST_F(Report, pictures_are_kept_when_gnuplot_draws_none) {
  const ReportModel model = model_of(shape_, directory_.path());
  const std::string out = directory_.path() + "/out";
  ASSERT_TRUE(write_report(model, out));
  const fs::path shim = directory_.path() + "/bin/gnuplot";
  fs::create_directories(shim.parent_path());
  std::ofstream(shim) << "#!/bin/sh\nexit 3\n";
  fs::permissions(shim, fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (shim.parent_path().string() + ":" + path).c_str(), 1);
  const Result<plots::Drawn> drawn = write_plots(model, out + "/plots");
  const Result<WrittenReport> written = write_report(model, out);
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(drawn);
  EXPECT_EQ(drawn.error().kind(), ErrorKind::environment);
  EXPECT_TRUE(fs::exists(out + "/plots/throughput.svg"));
  ASSERT_TRUE(written) << written.error().message();
  ASSERT_FALSE(written->notes.empty());
  EXPECT_TRUE(contains(written->notes[0], "those of before stay in plots/")) << written->notes[0];
  EXPECT_EQ(std::distance(fs::directory_iterator(out), fs::directory_iterator()), 3);
}

TEST_F(Report, figures_never_take_the_place_of_a_file_and_leave_a_link_to_their_folder) {
  const ReportModel model = model_of(shape_, directory_.path());
  const std::string file = directory_.path() + "/f.txt";
  std::ofstream(file) << "kept";
  fs::create_symlink("nowhere", directory_.path() + "/dangling");
  for (const std::string& name : {file, file + "/", directory_.path() + "/dangling"}) {
    const Result<plots::Drawn> drawn = write_plots(model, name);
    ASSERT_FALSE(drawn) << name;
    EXPECT_EQ(drawn.error().kind(), ErrorKind::bad_input) << name;
    const Result<WrittenReport> written = write_report(model, name);
    ASSERT_FALSE(written) << name;
    EXPECT_EQ(written.error().kind(), ErrorKind::bad_input) << name;
  }
  EXPECT_EQ(bytes_of(file), "kept");
  fs::create_directory(directory_.path() + "/real");
  fs::create_symlink("real", directory_.path() + "/link");
  ASSERT_TRUE(write_plots(model, directory_.path() + "/link"));
  EXPECT_TRUE(fs::is_symlink(directory_.path() + "/link"));
  EXPECT_TRUE(fs::exists(directory_.path() + "/real/throughput.svg"));
}

TEST_F(Report, what_an_interrupted_drawing_left_goes_with_the_next) {
  const ReportModel model = model_of(shape_, directory_.path());
  const std::string plots = directory_.path() + "/plots";
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  const std::string left = plots + "." + std::to_string(dead) + ".tmp";
  const std::string of_a_living = plots + "." + std::to_string(::getppid()) + ".tmp";
  for (const std::string& folder : {left, of_a_living, plots + ".mine.tmp", plots + ".tmp"}) {
    fs::create_directory(folder);
    std::ofstream(folder + "/space.gp") << "x";
  }
  ASSERT_TRUE(write_plots(model, plots));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(of_a_living));
  EXPECT_TRUE(fs::exists(plots + ".mine.tmp"));
  EXPECT_TRUE(fs::exists(plots + ".tmp"));
}

TEST_F(Report, figures_without_data_are_left_out_with_a_note) {
  shape_.histograms = false;
  shape_.seconds = 1;
  const ReportModel model = model_of(shape_, directory_.path());
  const Result<WrittenReport> written = write_report(model, directory_.path() + "/out");
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(written->plots.size(), 5U);
  ASSERT_EQ(written->notes.size(), 2U);
  EXPECT_TRUE(contains(written->notes[0], "latency"));
  EXPECT_TRUE(contains(written->notes[1], "time series"));
  EXPECT_TRUE(contains(bytes_of(written->html), "Not drawn: latency"));
}

TEST_F(Report, without_the_raw_records_draws_what_the_ledger_holds) {
  const fixture::Made made = fixture::write(shape_, directory_.path());
  for (const std::string& raw : made.raw_files) fs::remove(raw);
  const Result<ReportModel> model = load_report(made.ledger, "");
  ASSERT_TRUE(model) << model.error().message();
  const Result<plots::Drawn> drawn = write_plots(*model, directory_.path() + "/plots");
  ASSERT_TRUE(drawn) << drawn.error().message();
  EXPECT_EQ(drawn->figures.size(), 5U);  // all but the latency curves and the time series
  EXPECT_EQ(drawn->notes[0], "latency: raw records are missing");
  EXPECT_EQ(drawn->notes[1], "time series: raw records are missing");
  EXPECT_TRUE(contains(drawn->notes.back(), "20 of 20 raw records are missing"));
  EXPECT_TRUE(contains(terminal_report(*model, false, 400), "20 of 20 raw records are missing"));
  EXPECT_TRUE(contains(json_report(*model), "\"missing\": true"));
}

TEST_F(Report, an_arm_with_a_missing_raw_record_has_no_curve_of_the_others) {
  const fixture::Made made = fixture::write(shape_, directory_.path());
  fs::remove(made.raw_files.front());
  const Result<ReportModel> model = load_report(made.ledger, "");
  ASSERT_TRUE(model) << model.error().message();
  const std::string& arm = model->trials.front().arm;
  for (const plots::Arm& one : figure_set(*model).arms) {
    EXPECT_EQ(one.latencies.empty(), one.name == arm) << one.name;
    EXPECT_EQ(one.series.empty(), one.name == arm) << one.name;
  }
}

TEST_F(Report, a_declared_hypothesis_is_the_answer) {
  ReportModel model = model_of(shape_, directory_.path());
  model.comparisons[0].declared = true;  // sqlite against rocksdb, lost
  EXPECT_TRUE(make_content(model).headline.starts_with("Rejected: sqlite is 0.8"));
  model.comparisons[0].verdict = "inconclusive";
  EXPECT_TRUE(make_content(model).headline.starts_with("Not shown: "));
  model.comparisons[0].verdict = "superior";
  EXPECT_TRUE(make_content(model).headline.starts_with("Confirmed: "));
}

TEST_F(Report, tells_a_comparison_from_the_side_that_its_sentence_begins_with) {
  ReportModel model = model_of(shape_, directory_.path());
  Comparison& one = model.comparisons[0];
  one.a = "lmdb";
  one.b = "sqlite";
  one.verdict = "inferior";
  one.sentence = "sqlite is 298x lmdb (290 to 305), p = 0.01, n = 4";
  const Statement turned = make_content(model).comparisons[0];
  EXPECT_EQ(turned.mark, "+");
  EXPECT_TRUE(turned.detail.starts_with("sqlite is superior by a test of superiority"))
      << turned.detail;
  one.sentence = "lmdb is 0.003x sqlite (0.002 to 0.004), p = 0.01, n = 4";
  const Statement straight = make_content(model).comparisons[0];
  EXPECT_EQ(straight.mark, "-");
  EXPECT_TRUE(straight.detail.starts_with("lmdb is inferior by")) << straight.detail;
}

TEST_F(Report, calls_no_comparison_void_by_a_test) {
  ReportModel model = model_of(shape_, directory_.path());
  model.comparisons[0].verdict = "void";
  const Statement statement = make_content(model).comparisons[0];
  EXPECT_EQ(statement.mark, "!");
  EXPECT_TRUE(statement.detail.starts_with("void: no verdict on the claim of superiority"))
      << statement.detail;
  EXPECT_FALSE(contains(statement.detail, "void by a test")) << statement.detail;
}

TEST_F(Report, tells_a_claim_with_a_margin_by_what_became_of_it) {
  ReportModel model = model_of(shape_, directory_.path());
  Comparison& one = model.comparisons[0];
  one.declared = true;
  one.kind = "non-inferiority";
  one.verdict = "non-inferior";
  one.claim = "shown";
  EXPECT_TRUE(make_content(model).headline.starts_with("Confirmed: "));
  EXPECT_EQ(make_content(model).comparisons[0].mark, "=");
  EXPECT_TRUE(make_content(model).comparisons[0].detail.starts_with(
      "non-inferior by a test of non-inferiority"));
  one.kind = "equivalence";  // shown to be better by more than the margin: not equal
  one.verdict = "superior";
  one.claim = "refuted";
  EXPECT_TRUE(make_content(model).headline.starts_with("Rejected: "));
}

TEST_F(Report, says_where_a_class_was_proven_and_whether_the_control_was_seen) {
  ReportModel model = model_of(shape_, directory_.path());
  model.rows[0].proof = "proven";
  model.rows[0].proof_record = std::string(64, 'a');
  EXPECT_TRUE(durability_text(model.rows[0]).ends_with("(proven by aaaaaaaaaaaa)"));
  model.control = model.comparisons[0];
  model.control->verdict = "not ok";
  model.control->sentence = "the injected delay of 5 ns a call was NOT seen";
  bool told = false;
  for (const Statement& check : make_content(model).checks) {
    told = told || (check.mark == "!" && check.sentence.starts_with("Positive control: the inj"));
  }
  EXPECT_TRUE(told);
}

TEST_F(Report, shows_both_p_values_and_which_one_goes_with_the_interval) {
  ReportModel model = model_of(shape_, directory_.path());
  model.comparisons[0].p.value = 0.01;
  model.comparisons[0].p_adjusted.value = 0.03;
  EXPECT_TRUE(contains(make_content(model).comparisons[0].detail,
                       "adjusted p = 0.03 (p = 0.01 and the interval are not adjusted)"))
      << make_content(model).comparisons[0].detail;
  model.comparisons[0].p.value = 1e-20;
  model.comparisons[0].p_adjusted.value = 2e-20;
  EXPECT_TRUE(contains(make_content(model).comparisons[0].detail, "; adjusted p < 1e-15; "));
  model.comparisons[0].p.value = 0.01;
  model.comparisons[0].p_adjusted.value = 0.01;
  EXPECT_FALSE(contains(make_content(model).comparisons[0].detail, "adjusted"));
}

TEST_F(Report, says_when_the_rank_test_could_not_have_agreed) {
  ReportModel model = model_of(shape_, directory_.path());
  model.comparisons[0].mann_whitney_p.value = 0.33;
  model.comparisons[0].rank_p_smallest.value = 0.33;
  EXPECT_TRUE(contains(make_content(model).comparisons[0].detail,
                       "Mann-Whitney p = 0.33, the least that so few trials allow"));
}

TEST_F(Report, of_windows_counts_sets_of_processes) {
  ReportModel model = model_of(shape_, directory_.path());
  const auto unit = [&model] {
    for (const auto& [name, value] : make_content(model).facts) {
      if (name == "unit of analysis") return value;
    }
    return std::string();
  };
  EXPECT_EQ(unit(), "one process a value");
  model.design = "windows";
  EXPECT_EQ(unit(), "one set of processes that take turns, one value an arm from each");
}

TEST_F(Report, names_void_trials_of_one_cause_in_one_line) {
  ReportModel model = model_of(shape_, directory_.path());
  for (Trial& trial : model.trials) {
    if (trial.arm != "sqlite" && trial.index != 0) continue;
    trial.status = "void";
    trial.reason = "others used 0.7" + std::to_string(trial.index) + " CPUs";
  }
  std::size_t lines = 0;
  for (const Statement& check : make_content(model).checks) {
    if (!check.detail.starts_with("others used")) continue;
    ++lines;
    const bool many = check.sentence.starts_with("4 trials of sqlite are void (the first: ");
    EXPECT_TRUE(many || check.sentence.starts_with("Trial 0 of ") ||
                check.sentence.starts_with("5 trials of sqlite"))
        << check.sentence;
  }
  EXPECT_LE(lines, 2U);
  EXPECT_GE(lines, 1U);
}

TEST_F(Report, a_void_experiment_names_no_leader) {
  ReportModel model = model_of(shape_, directory_.path());
  model.outcome = "void";
  model.void_reasons = {"A/A gate: too wide"};
  const Content content = make_content(model);
  EXPECT_EQ(content.headline, "Void, may not be judged: A/A gate: too wide.");
  EXPECT_EQ(content.checks[0].sentence, "Void: A/A gate: too wide");
}

TEST_F(Report, the_twin_of_the_a_a_check_is_no_rival) {
  ReportModel model = model_of(shape_, directory_.path());
  model.rows[0].a_a_twin = true;
  EXPECT_TRUE(make_content(model).headline.starts_with("sqlite leads"));
  EXPECT_TRUE(contains(row_title(model.rows[0]), "A/A"));
  EXPECT_EQ(make_content(model).question, "throughput of sqlite, lmdb on durable-put");
  model.question = "Which is faster?";
  EXPECT_EQ(make_content(model).question, "Which is faster?");
}

TEST(InlineSvg, prefixes_ids_so_that_pictures_do_not_meet) {
  const std::string svg =
      "<?xml version=\"1.0\"?>\n<svg width=\"9\">\n"
      "<path id='gpPt0'/><use xlink:href='#gpPt0'/><g id=\"plot\"/></svg>\n";
  EXPECT_EQ(inline_svg(svg, "p1-", "a \"b\""),
            "<svg role=\"img\" aria-label=\"a &quot;b&quot;\" width=\"9\">\n"
            "<path id='p1-gpPt0'/><use xlink:href='#p1-gpPt0'/><g id=\"p1-plot\"/></svg>");
}

TEST(TextBar, counts_eighths) {
  EXPECT_EQ(text_bar(1.0, 4), "\u2588\u2588\u2588\u2588");
  EXPECT_EQ(text_bar(0.5, 4), "\u2588\u2588");
  EXPECT_EQ(text_bar(0.0, 4), "");
  EXPECT_EQ(text_bar(1.0 / 32, 4), "\u258f");
  EXPECT_EQ(text_bar(7.0, 4), "\u2588\u2588\u2588\u25b6");
}

TEST_F(Report, the_percentile_curve_is_exact_at_its_ends) {
  const ReportModel model = model_of(shape_, directory_.path());
  const plots::FigureSet set = figure_set(model);
  for (const plots::Arm& arm : set.arms) {
    LatencyCounts counts;
    for (const Trial& trial : model.trials) {
      if (trial.arm != arm.name) continue;
      for (const auto& [latency, count] : trial.latencies.at("update")) counts[latency] += count;
    }
    ASSERT_EQ(arm.latencies.size(), 1U);
    const auto& points = arm.latencies[0].points;
    EXPECT_EQ(points.front().latency_ns, static_cast<double>(counts.begin()->first));
    EXPECT_EQ(points.back().latency_ns, static_cast<double>(counts.rbegin()->first));
    for (std::size_t i = 1; i < points.size(); ++i) {
      EXPECT_GE(points[i].latency_ns, points[i - 1].latency_ns);
    }
  }
}

TEST_F(Report, as_json_holds_the_verdict_as_recorded) {
  const ReportModel model = model_of(shape_, directory_.path());
  const std::string json = json_report(model);
  EXPECT_TRUE(contains(json, "\"head\": \"" + model.head_hash + "\""));
  EXPECT_TRUE(contains(json, "\"workload\": \"durable-put\""));
}

}  // namespace
}  // namespace assay::report
