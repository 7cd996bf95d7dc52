#include "harness/qualify/perform.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace assay::qualify {
namespace {

/// After its commit, a writer must find what the commit wrote: nobody else writes these keys.
Status read_back(Session& session, const History& history, const Transaction& made) {
  const Change& last = made.changes.back();
  std::string_view value;
  const Result<bool> found = session.get(history.key_bytes({made.writer, last.key}), value);
  if (!found) return fail(found.error());
  if (*found != !last.erase || (*found && value != last.value))
    return fail(ErrorKind::wrong_contents,
                fmt::format("transaction {} of writer {} was acknowledged, but the key that it "
                            "changed last does not hold what it wrote",
                            made.number, made.writer));
  return {};
}

class Writer {
 public:
  Writer(Store& store, const History& history, const LifePlan& plan, ReceiptSink& sink,
         std::uint32_t writer)
      : store_(store), history_(history), plan_(plan), sink_(sink), writer_(writer) {}

  Status run() {
    Result<std::unique_ptr<Session>> session = store_.session();
    if (!session) return fail(session.error());
    const std::uint64_t first = plan_.first[writer_];
    for (std::uint64_t done = 0; done < plan_.transactions; ++done) {
      const Transaction made = history_.transaction(writer_, first + done);
      sink_.begun(writer_, made.number);
      ASSAY_TRY(perform_transaction(**session, history_, made));
      sink_.acknowledged(writer_, made.number);
      if (is_due(plan_.read_every, done) && !made.rolled_back)
        ASSAY_TRY(read_back(**session, history_, made));
      if (writer_ == 0) ASSAY_TRY(look_after_store(done));
    }
    return {};
  }

 private:
  static bool is_due(std::uint32_t every, std::uint64_t done) {
    return every != 0 && (done + 1) % every == 0;
  }

  Status look_after_store(std::uint64_t done) {
    if (is_due(plan_.sync_every, done)) {
      const std::uint64_t began = sink_.sync_begins();
      ASSAY_TRY(store_.sync());
      sink_.synced(began);
    }
    if (is_due(plan_.checkpoint_every, done)) {
      sink_.stage(Stage::checkpoint);
      ASSAY_TRY(store_.checkpoint());
      sink_.stage(Stage::open);
    }
    return {};
  }

  Store& store_;
  const History& history_;
  const LifePlan& plan_;
  ReceiptSink& sink_;
  std::uint32_t writer_;
};

}  // namespace

OpenOptions qualification_options(const std::string& directory, DurabilityClass durability,
                                  const Settings& settings, KeyKind key_kind) {
  OpenOptions options;
  options.directory = directory;
  options.durability = durability;
  options.settings = settings;
  options.key_kind = key_kind;
  options.memory_bytes = std::uint64_t{8} << 20;
  options.expected_bytes = std::uint64_t{1} << 20;
  options.value_bytes = 256;
  return options;
}

Status perform_transaction(Session& session, const History& history,
                           const Transaction& transaction) {
  std::vector<std::string> keys;
  std::vector<Mutation> mutations;
  keys.reserve(transaction.changes.size());
  for (const Change& change : transaction.changes) {
    keys.push_back(history.key_bytes({transaction.writer, change.key}));
    mutations.push_back({.kind = change.erase ? Mutation::Kind::erase : Mutation::Kind::put,
                         .key = keys.back(),
                         .value = change.value});
  }
  if (transaction.rolled_back) return session.rollback(mutations);
  if (history.shape().changes_max > 0) return session.apply(mutations);
  for (const Mutation& mutation : mutations) {
    ASSAY_TRY(mutation.kind == Mutation::Kind::put ? session.put(mutation.key, mutation.value)
                                                   : session.erase(mutation.key));
  }
  return {};
}

Status perform(Store& store, const History& history, const LifePlan& plan, ReceiptSink& sink) {
  const std::uint32_t count = history.shape().writers;
  ASSAY_CHECK(plan.first.size() == count, "each writer begins somewhere");
  std::vector<Status> outcomes(count);
  const auto run = [&](std::uint32_t writer) {
    outcomes[writer] = Writer(store, history, plan, sink, writer).run();
  };
  std::vector<std::thread> others;
  others.reserve(count - 1);
  for (std::uint32_t writer = 1; writer < count; ++writer) others.emplace_back(run, writer);
  run(0);
  for (std::thread& other : others) other.join();
  for (Status& outcome : outcomes)
    if (!outcome) return std::move(outcome);
  return {};
}

}  // namespace assay::qualify
