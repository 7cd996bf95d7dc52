#include "harness/qualify/bundle.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "harness/ledger/durable_file.h"
#include "harness/qualify/directory_image.h"
#include "harness/qualify/kill/forked.h"
#include "harness/qualify/perform.h"
#include "harness/trial/trial_directory.h"

namespace assay::qualify {
namespace {

namespace fs = std::filesystem;

nlohmann::json to_json(const Bundle& bundle) {
  return {{"schema", 1},
          {"level", bundle.level},
          {"profile", bundle.profile},
          {"store", bundle.store},
          {"version", bundle.version},
          {"durability", to_string(bundle.durability)},
          {"settings", bundle.settings},
          {"allowed", to_string(bundle.allowed)},
          {"seed", bundle.seed},
          {"shape", qualify::to_json(bundle.shape)},
          {"acknowledgements", qualify::to_json(bundle.acknowledgements)},
          {"judgement", qualify::to_json(bundle.judgement)},
          {"story", bundle.story},
          {"transactions_after", bundle.transactions_after},
          {"open_timeout_ms", bundle.open_timeout_ms},
          {"origin", bundle.origin}};
}

Result<Bundle> bundle_from_json(const nlohmann::json& json) {
  Bundle bundle;
  try {
    if (json.at("schema") != 1)
      return fail(ErrorKind::bad_input, "the bundle was written by another version of assay");
    bundle.level = json.at("level");
    bundle.profile = json.at("profile");
    bundle.store = json.at("store");
    bundle.version = json.at("version");
    const auto durability = parse_durability(json.at("durability").get<std::string>());
    if (!durability) return fail(durability.error());
    bundle.durability = *durability;
    bundle.settings = json.at("settings").get<Settings>();
    const Result<Loss> allowed = parse_loss(json.at("allowed").get<std::string>());
    if (!allowed) return fail(allowed.error());
    bundle.allowed = *allowed;
    bundle.seed = json.at("seed");
    const Result<HistoryShape> shape = history_shape_from_json(json.at("shape"));
    if (!shape) return fail(shape.error());
    bundle.shape = *shape;
    Result<Acknowledgements> known = acknowledgements_from_json(json.at("acknowledgements"));
    if (!known) return fail(known.error());
    bundle.acknowledgements = std::move(*known);
    Result<Judgement> judgement = judgement_from_json(json.at("judgement"));
    if (!judgement) return fail(judgement.error());
    bundle.judgement = std::move(*judgement);
    bundle.story = json.at("story").get<std::vector<std::string>>();
    bundle.transactions_after = json.at("transactions_after");
    bundle.open_timeout_ms = json.at("open_timeout_ms");
    bundle.origin = json.at("origin");
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::bad_input, fmt::format("not a bundle: {}", exception.what()));
  }
  if (bundle.acknowledgements.writers.size() != bundle.shape.writers)
    return fail(ErrorKind::bad_input, "the bundle's acknowledgements are of other writers");
  for (const Acknowledgements::Writer& writer : bundle.acknowledgements.writers)
    if (writer.base.state.size() != bundle.shape.keys + 1)
      return fail(ErrorKind::bad_input, "the bundle's acknowledgements are of other keys");
  return bundle;
}

}  // namespace

Status write_bundle(const std::string& path, const Bundle& bundle, const std::string& image) {
  std::error_code code;
  if (fs::exists(path, code))
    return fail(Error(ErrorKind::bad_input, "a bundle is there already").at(path));
  const std::string parent = folder_of(path);
  ASSAY_TRY(make_directories_durably(parent));
  const std::string unfinished = path + ".unfinished";
  fs::remove_all(unfinished, code);
  ASSAY_TRY(copy_directory(image, unfinished + "/image"));
  ASSAY_TRY(write_file_durably(unfinished + "/bundle.json", to_json(bundle).dump(2) + "\n"));
  fs::rename(unfinished, path, code);
  if (code)
    return fail(Error(ErrorKind::environment, "cannot put a bundle in its place: " + code.message())
                    .at(path));
  return flush_directory(parent);
}

Result<Bundle> read_bundle(const std::string& path) {
  const std::string file = path + "/bundle.json";
  const Result<std::string> text = read_whole_file(file);
  if (!text) {
    Error error = text.error();
    return fail(error.hint("give the directory of a bundle, as `assay qualify` printed it"));
  }
  Result<Bundle> bundle = bundle_from_json(nlohmann::json::parse(*text, nullptr, false));
  if (!bundle) {
    Error error = bundle.error();
    return fail(error.at(file));
  }
  return bundle;
}

Result<Judgement> replay_bundle(const std::string& path, const Bundle& bundle, const Driver& driver,
                                const std::string& root) {
  const Result<TrialDirectory> directory = TrialDirectory::make(root);
  if (!directory) return fail(directory.error());
  const std::string copy = directory->path() + "/replay";
  ASSAY_TRY(copy_directory(path + "/image", copy));
  Result<SharedText> text = SharedText::make(std::size_t{16} << 20);
  if (!text) return fail(text.error());
  std::uint32_t left_behind = 0;
  return judge_in_fork(bundle, driver, copy, *text, left_behind);
}

Result<Judgement> judge_in_fork(const Bundle& bundle, const Driver& driver,
                                const std::string& directory, SharedText& text,
                                std::uint32_t& left_behind) {
  text.clear();
  const History history(bundle.seed, bundle.shape);
  Result<Forked> fork = Forked::start([&] {
    CheckRequest request;
    request.driver = &driver;
    request.options =
        qualification_options(directory, bundle.durability, bundle.settings, bundle.shape.key_kind);
    request.history = &history;
    request.acknowledgements = bundle.acknowledgements;
    request.transactions_after = bundle.transactions_after;
    text.set(qualify::to_json(check_directory(request))
                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  });
  if (!fork) return fail(fork.error());
  const ForkEnd end = fork->wait(std::chrono::milliseconds(bundle.open_timeout_ms) * 2);
  left_behind += end.left_behind;
  if (end.timed_out || end.exit_status != 0)
    return judge_unopened(bundle.acknowledgements,
                          end.timed_out ? Finding::Kind::hung : Finding::Kind::crashed,
                          "a fresh process: " + end.text());
  return judgement_from_json(nlohmann::json::parse(text.get(), nullptr, false));
}

std::string case_command(const Bundle& bundle) {
  return bundle.origin.is_object() ? bundle.origin.value("only_in_the_life", "") : "";
}

std::string bundle_story(const Bundle& bundle, const Judgement& now) {
  std::string text = fmt::format("{} {}, opened for durability {}", bundle.store, bundle.version,
                                 to_string(bundle.durability));
  for (const auto& [name, value] : bundle.settings) text += fmt::format(" {}={}", name, value);
  text += fmt::format("\nlevel {}{}{}; the contract allows: {}\n\n", bundle.level,
                      bundle.profile.empty() ? "" : ", profile ", bundle.profile,
                      to_string(bundle.allowed));
  text += "what happened\n";
  int step = 0;
  for (const std::string& sentence : bundle.story)
    text += fmt::format("  {}. {}\n", ++step, sentence);
  text += "\nwhat was acknowledged\n";
  for (std::size_t index = 0; index < bundle.acknowledgements.writers.size(); ++index) {
    const Acknowledgements::Writer& writer = bundle.acknowledgements.writers[index];
    std::uint64_t acknowledged = 0;
    std::string open;
    for (std::size_t at = 0; at < writer.since.size(); ++at) {
      if (writer.since[at].acknowledged != 0)
        ++acknowledged;
      else
        open += fmt::format(" {}", writer.base.number + at + 1);
    }
    text += fmt::format("  writer {}: transactions up to {} settled before, {} acknowledged since",
                        index, writer.base.number, acknowledged);
    text += open.empty() ? "\n" : fmt::format("; begun but not acknowledged:{}\n", open);
  }
  text += fmt::format("\nwhat came back: {}\n", to_string(now.loss));
  for (const Finding& finding : now.findings)
    text += fmt::format("  {}: {}\n", to_string(finding.kind), finding.text);
  if (now.findings.empty()) text += "  everything that was acknowledged, whole\n";
  if (const std::string command = case_command(bundle); !command.empty())
    text += fmt::format("\nthe failure was in the process itself, which this runs again: {}\n",
                        command);
  return text;
}

}  // namespace assay::qualify
