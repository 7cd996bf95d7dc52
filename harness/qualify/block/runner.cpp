#include "harness/qualify/block/runner.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "harness/qualify/block/loop_device.h"
#include "harness/qualify/directory_image.h"
#include "harness/qualify/kill/forked.h"
#include "harness/qualify/perform.h"
#include "harness/qualify/power/store_life.h"
#include "harness/trial/worker_request.h"

namespace assay::qualify::block {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Kind = Finding::Kind;

constexpr std::size_t kTextBytes = std::size_t{16} << 20;
constexpr std::uint64_t kSettled = 1;  ///< transactions of each writer before the recording
constexpr std::uint32_t kNudgeOneIn = 4;
constexpr std::uint32_t kSyncOneIn = 6;  ///< of the nudges, for the whole file system

constexpr int kStoreFailed = 3;

/// Asks the parent to have data written back, and waits until it has.
class Nudges {
 public:
  Nudges() {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0) ends_ = {-1, -1};
  }
  ~Nudges() {
    for (const int end : ends_)
      if (end >= 0) ::close(end);
  }
  Nudges(const Nudges&) = delete;
  Nudges& operator=(const Nudges&) = delete;

  void ask(char how) const {
    char answer = 0;
    if (::send(ends_[1], &how, 1, MSG_NOSIGNAL) == 1)
      static_cast<void>(!::read(ends_[1], &answer, 1));
  }
  void end_parent_side() const { ::close(ends_[0]); }
  void end_child_side() {
    ::close(ends_[1]);
    ends_[1] = -1;
  }
  /// Serves the child until it has ended or `until`.
  template <class Act>
  void serve(pid_t child, Clock::time_point until, const Act& act) const {
    while (Clock::now() < until) {
      pollfd poll{ends_[0], POLLIN, 0};
      if (::poll(&poll, 1, 20) > 0) {
        char how = 0;
        if (::read(ends_[0], &how, 1) != 1) return;
        act(how);
        static_cast<void>(!::send(ends_[0], &how, 1, MSG_NOSIGNAL));
        continue;
      }
      // What it left behind may hold the other end.
      siginfo_t info{};
      if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
          info.si_pid == child)
        return;
    }
  }

 private:
  std::array<int, 2> ends_{};
};

Status sync_file_system(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return fail(system_error("cannot open", errno).at(path));
  const int code = ::syncfs(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (code != 0) return fail(system_error("cannot sync a file system", code).at(path));
  return {};
}

/// Has the kernel begin to write the data of all files: no flush, no commit of a journal.
void write_back(const std::string& directory) {
  std::error_code code;
  for (const auto& entry : fs::recursive_directory_iterator(directory, code)) {
    if (!entry.is_regular_file(code)) continue;
    const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    ::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    ::close(fd);
  }
}

class Runner {
 public:
  Runner(const LanePlan& plan, SharedDisk& disk, const std::string& directory, int control,
         int conversation)
      : plan_(plan),
        disk_(disk),
        control_(control),
        conversation_(conversation),
        file_(directory + "/disk/" + kDiskName),
        mounted_(directory + "/mnt"),
        store_(mounted_ + "/store"),
        canary_(mounted_ + "/canary") {}

  void run() {
    Status ready = prepare();
    std::string unread;
    while (true) {
      const std::size_t end = unread.find('\n');
      if (end == std::string::npos) {
        std::array<char, 65'536> buffer;
        const ssize_t got = ::read(conversation_, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return;
        unread.append(buffer.data(), static_cast<std::size_t>(got));
        continue;
      }
      const nlohmann::json request = nlohmann::json::parse(unread.substr(0, end), nullptr, false);
      unread.erase(0, end + 1);
      if (!ready) {
        say({{"error", error_to_json(ready.error())}});
        continue;
      }
      const Result<nlohmann::json> done =
          request.contains("record") ? record(request["record"]) : check(request);
      say(done ? *done : nlohmann::json{{"error", error_to_json(done.error())}});
    }
  }

 private:
  Status prepare() {
    ASSAY_TRY(adopt_orphans());
    ASSAY_TRY(control_.wait_until_ready());
    // Once more: what is mounted from here on must not be the server's to unmount. A server that is
    // killed would wait for the disk, which it serves itself, before it lets go of /dev/fuse.
    ASSAY_TRY(enter_own_namespace());
    Result<SharedText> text = SharedText::make(kTextBytes);
    if (!text) return fail(text.error());
    text_ = std::make_unique<SharedText>(std::move(*text));
    ASSAY_TRY(attach());
    return {};
  }

  Status attach() {
    loop_.reset();
    Result<LoopDevice> loop = LoopDevice::attach(file_);
    if (!loop) return fail(loop.error());
    loop_ = std::make_unique<LoopDevice>(std::move(*loop));
    return {};
  }

  void say(const nlohmann::json& message) const {
    const std::string line =
        message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t put =
          ::send(conversation_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return;
      done += static_cast<std::size_t>(put);
    }
  }

  [[nodiscard]] OpenOptions options() const {
    return qualification_options(store_, plan_.durability, plan_.settings, plan_.shape.key_kind);
  }

  /// Writes one more byte to the canary and flushes it; the length of the log from which on it has
  /// to be there.
  Result<std::uint32_t> sing(bool first) const {
    const int fd = ::open(canary_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return fail(system_error("cannot write the harness's own file", errno).at(canary_));
    const bool done = ::write(fd, "!", 1) == 1 && ::fsync(fd) == 0;
    const int code = errno;
    ::close(fd);
    if (!done) return fail(system_error("cannot flush the harness's own file", code).at(canary_));
    if (first) {
      const int folder = ::open(mounted_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (folder < 0 || ::fsync(folder) != 0)
        return fail(system_error("cannot flush a directory", errno).at(mounted_));
      ::close(folder);
    }
    return disk_.length();
  }

  Status make_store(const History& history) {
    text_->clear();
    Result<Forked> fork = Forked::start([&] {
      SilentReceipts sink;
      const Status done = live(history, 1, kSettled, true, sink);
      if (!done) text_->set(done.error().message());
      return done ? 0 : kStoreFailed;
    });
    if (!fork) return fail(fork.error());
    const ForkEnd end = fork->wait(plan_.patience);
    if (end.exit_status == 0 && !end.timed_out) return {};
    const std::string why = text_->get();
    return fail(ErrorKind::store, "the store cannot be made: " + (why.empty() ? end.text() : why));
  }

  Status live(const History& history, std::uint64_t first, std::uint64_t transactions, bool create,
              ReceiptSink& sink) {
    OpenOptions how = options();
    how.create = create;
    sink.stage(Stage::opening);
    Result<std::unique_ptr<Store>> store = plan_.driver->open(how);
    if (!store) return fail(store.error());
    sink.stage(Stage::open);
    if (!create) {
      const Result<Settings> settings = (*store)->effective_settings();
      if (!settings) return fail(settings.error());
      text_->set(nlohmann::json(*settings).dump());
    }
    LifePlan life;
    life.first.assign(history.shape().writers, first);
    life.transactions = transactions;
    life.checkpoint_every = create ? 0 : plan_.checkpoint_every;
    ASSAY_TRY(perform(**store, history, life, sink));
    sink.stage(Stage::closing);
    ASSAY_TRY((*store)->close());
    sink.stage(Stage::closed);
    return {};
  }

  /// The recorded life: a fork performs, this process has data written back where it is asked to.
  Status perform_recorded(const History& history, NotedReceipts& noted) {
    Nudges nudges;
    const std::uint64_t seed = history.seed();
    if (seed % 2 == 1) {
      noted.then([&nudges, seed](std::uint64_t number) {
        // Scattered by the history's seed alone.
        const std::uint64_t mixed = (seed + number) * 0x9e3779b97f4a7c15 >> 32;
        if (mixed % kNudgeOneIn == 0) nudges.ask(mixed / kNudgeOneIn % kSyncOneIn == 0 ? 's' : 'w');
      });
    }
    text_->clear();
    Result<Forked> fork = Forked::start([&] {
      nudges.end_parent_side();
      const Status done = live(history, kSettled + 1, plan_.transactions, false, noted);
      if (!done) text_->set(done.error().message());
      return done ? 0 : kStoreFailed;
    });
    if (!fork) return fail(fork.error());
    nudges.end_child_side();
    nudges.serve(fork->pid(), Clock::now() + plan_.patience, [&](char how) {
      write_back(store_);
      if (how == 's') static_cast<void>(sync_file_system(mounted_));
    });
    const ForkEnd end = fork->wait(plan_.patience);
    if (end.exit_status == 0 && !end.timed_out) return {};
    const std::string why = end.exit_status == kStoreFailed ? text_->get() : end.text();
    return fail(ErrorKind::store, "the store failed while its history was performed: " + why);
  }

  Result<nlohmann::json> record(std::uint64_t seed) {
    const History history(seed, plan_.shape);
    const std::uint32_t writers = plan_.shape.writers;
    ASSAY_TRY(control_.begin_base());
    ASSAY_TRY(loop_->forget_cache());
    ASSAY_TRY(make_file_system(plan_.system, loop_->path()));
    ASSAY_TRY(mount_file_system(plan_.system, loop_->path(), mounted_));
    Result<nlohmann::json> recorded = record_mounted(history, writers);
    const Status unmounted = unmount_file_system(mounted_, !recorded);
    if (!recorded) return recorded;
    if (!unmounted) return fail(unmounted.error());
    return recorded;
  }

  Result<nlohmann::json> record_mounted(const History& history, std::uint32_t writers) {
    nlohmann::json described = describe_file_system(plan_.system, loop_->path(), mounted_);
    std::error_code code;
    fs::create_directory(store_, code);
    ASSAY_TRY(make_store(history));
    ASSAY_TRY(sync_file_system(mounted_));
    Result<SharedReceipts> receipts = SharedReceipts::make(history, plan_.transactions);
    if (!receipts) return fail(receipts.error());
    std::vector<Baseline> bases;
    for (std::uint32_t writer = 0; writer < writers; ++writer)
      bases.push_back(power::baseline_after(history, writer, kSettled));
    receipts->settle(bases);
    receipts->stage(Stage::open);
    Result<NotedReceipts> noted = NotedReceipts::make(*receipts, disk_.length_counter(), writers,
                                                      kSettled + 1, plan_.transactions);
    if (!noted) return fail(noted.error());
    ASSAY_TRY(control_.begin_record());
    const auto began = Clock::now();
    const Result<std::uint32_t> first = sing(true);
    if (!first) return fail(first.error());
    ASSAY_TRY(perform_recorded(history, *noted));
    const Result<std::uint32_t> second = sing(false);
    if (!second) return fail(second.error());
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    if (const Status same = control_.end_record(); !same) return fail(same.error());
    if (disk_.full())
      return fail(ErrorKind::unsupported,
                  fmt::format("the history wrote more than the disk's log holds ({} entries)",
                              disk_.length()));
    nlohmann::json extents = nlohmann::json::array();
    if (plan_.system.physical_extents)
      for (const Extent& one : extents_below(store_))
        extents.push_back({one.device_offset, one.bytes, one.file_offset, one.file});
    return nlohmann::json{{"timed", to_json(noted->read())},
                          {"canaries", {*first, *second}},
                          {"file_system", std::move(described)},
                          {"extents", std::move(extents)},
                          {"seconds", seconds},
                          {"settings", nlohmann::json::parse(text_->get(), nullptr, false)}};
  }

  Result<nlohmann::json> check(const nlohmann::json& request) {
    DiskState state;
    state.durable_end = request.at("durable_end");
    for (const nlohmann::json& piece : request.at("pieces"))
      state.kept.push_back({piece.at(0), piece.at(1), piece.at(2)});
    Result<Acknowledgements> known = acknowledgements_from_json(request.at("known"));
    if (!known) return fail(known.error());
    ASSAY_TRY(control_.become(state));
    ASSAY_TRY(loop_->forget_cache());
    nlohmann::json answer = {{"not_mounted", ""}, {"canaries", 0}, {"judgement", nullptr}};
    Status mounted = repair_file_system(plan_.system, loop_->path());
    if (mounted) mounted = mount_file_system(plan_.system, loop_->path(), mounted_);
    if (!mounted) {
      answer["not_mounted"] = mounted.error().message();
      return answer;
    }
    std::error_code code;
    const auto canaries = fs::file_size(canary_, code);
    answer["canaries"] = code ? 0 : canaries;
    Status kept;
    const std::string image = request.at("image");
    if (!image.empty()) kept = copy_directory(store_, image);
    const History history(request.at("check").get<std::uint64_t>(), plan_.shape);
    Result<Judgement> judgement = judge_mounted(history, *known);
    ASSAY_TRY(unmount_file_system(mounted_, true));
    if (!kept) return fail(kept.error());
    if (!judgement) return fail(judgement.error());
    answer["judgement"] = to_json(*judgement);
    return answer;
  }

  Result<Judgement> judge_mounted(const History& history, const Acknowledgements& known) {
    text_->clear();
    Result<Forked> fork = Forked::start([&] {
      CheckRequest request;
      request.driver = plan_.driver;
      request.options = options();
      request.history = &history;
      request.acknowledgements = known;
      request.transactions_after = plan_.transactions_after;
      Judgement judgement = check_directory(request);
      judgement.found.clear();  // what it has is of no interest, and long
      text_->set(to_json(judgement).dump());
      return 0;
    });
    if (!fork) return fail(fork.error());
    const ForkEnd end = fork->wait(plan_.patience);
    if (end.timed_out)
      return judge_unopened(
          known, Kind::hung,
          fmt::format("it does not open or answer within {} ms", plan_.patience.count()));
    if (end.exit_status != 0)
      return judge_unopened(known, Kind::crashed, "a fresh process died: " + end.text());
    return judgement_from_json(nlohmann::json::parse(text_->get(), nullptr, false));
  }

  const LanePlan& plan_;
  SharedDisk& disk_;
  DiskControl control_;
  int conversation_;
  std::string file_;
  std::string mounted_;
  std::string store_;
  std::string canary_;
  std::unique_ptr<SharedText> text_;
  std::unique_ptr<LoopDevice> loop_;
};

}  // namespace

void run_lane(const LanePlan& plan, SharedDisk& disk, const std::string& directory, int control,
              int conversation) {
  Runner(plan, disk, directory, control, conversation).run();
}

}  // namespace assay::qualify::block
