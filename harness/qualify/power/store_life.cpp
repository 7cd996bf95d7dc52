#include "harness/qualify/power/store_life.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace assay::qualify::power {
namespace {

Status live(const LifeOfStore& life, bool create, const LifePlan& plan, ReceiptSink& sink) {
  OpenOptions options = life.options;
  options.create = create;
  options.key_kind = life.history->shape().key_kind;
  sink.stage(Stage::opening);
  auto store = life.driver->open(options);
  if (!store) return std::unexpected(store.error());
  sink.stage(Stage::open);
  ASSAY_TRY(perform(**store, *life.history, plan, sink));
  sink.stage(Stage::closing);
  ASSAY_TRY((*store)->close());
  sink.stage(Stage::closed);
  return {};
}

/// Runs `work` in a child: a store that was opened here would leave its threads to later forks.
Status in_child(const std::function<Status()>& work) {
  std::array<int, 2> pipe;
  if (::pipe(pipe.data()) != 0) return fail(system_error("cannot make a pipe", errno));
  const pid_t child = ::fork();
  if (child < 0) return fail(system_error("cannot start a process", errno));
  if (child == 0) {
    const Status done = work();
    const std::string text = done ? "" : done.error().message().substr(0, 4000);
    static_cast<void>(!::write(pipe[1], text.data(), text.size()));
    ::_exit(done ? 0 : 1);
  }
  ::close(pipe[1]);
  std::string text(4096, '\0');
  const ssize_t got = ::read(pipe[0], text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  ::close(pipe[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(ErrorKind::store,
              "before the recording: " + (text.empty() ? "the store died" : text));
}

LifePlan plan_of(const LifeOfStore& life, std::uint64_t first, std::uint64_t transactions) {
  LifePlan plan;
  plan.first.assign(life.history->shape().writers, first);
  plan.transactions = transactions;
  plan.checkpoint_every = life.checkpoint_every;
  plan.sync_every = life.sync_every;
  return plan;
}

}  // namespace

Baseline baseline_after(const History& history, std::uint32_t writer, std::uint64_t transactions) {
  Baseline base;
  base.state.resize(history.keys_of_writer());
  for (base.number = 0; base.number < transactions;) {
    const Transaction made = history.transaction(writer, ++base.number);
    if (made.rolled_back) continue;
    for (std::uint32_t position = 0; position < made.changes.size(); ++position) {
      const Change& change = made.changes[position];
      base.state[change.key] = change.erase ? Version{} : Version{made.number, position};
    }
  }
  return base;
}

Result<RecordedLife> record_store(const LifeOfStore& life) {
  const std::uint32_t writers = life.history->shape().writers;
  std::uint64_t settled = 0;
  if (!life.creation) {
    settled = 1;
    ASSAY_TRY(in_child([&]() -> Status {
      SilentReceipts sink;
      LifePlan plan = plan_of(life, 1, settled);
      plan.checkpoint_every = plan.sync_every = 0;
      return live(life, true, plan, sink);
    }));
  }
  RecordPlan record;
  record.directory = life.options.directory;
  record.timeout = life.timeout;
  record.fail_sync = life.fail_sync;
  const auto begin = std::chrono::steady_clock::now();
  auto trace = record_call(record, [&]() -> Status {
    RecordSink sink;
    return live(life, life.creation, plan_of(life, settled + 1, life.transactions), sink);
  });
  if (!trace) return std::unexpected(trace.error());
  RecordedLife out;
  out.recorded = std::chrono::steady_clock::now() - begin;
  std::vector<Baseline> bases;
  for (std::uint32_t writer = 0; writer < writers; ++writer) {
    bases.push_back(baseline_after(*life.history, writer, settled));
  }
  out.trace = std::move(*trace);
  out.receipts = receipts_of(out.trace, bases, !life.creation);
  return out;
}

Check check_of(const LifeOfStore& life) {
  return [&life](const std::string& directory, const Acknowledgements& known) {
    CheckRequest request;
    request.driver = life.driver;
    request.options = life.options;
    request.options.directory = directory;
    request.history = life.history;
    request.acknowledgements = known;
    request.transactions_after = life.transactions_after;
    return check_directory(request);
  };
}

Result<RecordedLife> record_recovery(const LifeOfStore& life, const Tree& state,
                                     const Acknowledgements& known, const std::string& directory) {
  empty_directory(directory);
  ASSAY_TRY(write_tree(state, directory));
  RecordPlan record;
  record.directory = directory;
  record.timeout = life.timeout;
  auto trace = record_call(record, [&]() -> Status {
    OpenOptions options = life.options;
    options.directory = directory;
    options.create = !known.created;
    options.key_kind = life.history->shape().key_kind;
    auto store = life.driver->open(options);
    if (!store) return std::unexpected(store.error());
    return (*store)->close();
  });
  if (!trace) return std::unexpected(trace.error());
  RecordedLife out;
  out.trace = std::move(*trace);
  out.receipts = known;
  // All of it was known before the first event of the recovery.
  for (auto& writer : out.receipts.writers) {
    for (Receipt& receipt : writer.since) {
      receipt.begun = receipt.begun == 0 ? 0 : 1;
      receipt.acknowledged = receipt.acknowledged == 0 ? 0 : 1;
    }
  }
  return out;
}

}  // namespace assay::qualify::power
