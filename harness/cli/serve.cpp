// assay serve: one store behind a Unix socket, until a signal or a client ends it.
//
// With --child it is what the driver of adapters/served starts: it answers on standard output in
// frames, dies with the process that started it, and prints nothing.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "adapters/registry.h"
#include "adapters/served/channel.h"
#include "adapters/served/protocol.h"
#include "harness/cli/print_json.h"
#include "harness/cli/set_flags.h"
#include "harness/cli/terminal_width.h"
#include "harness/cli/verb.h"
#include "harness/experiment/stop_signal.h"
#include "harness/serve/serve_directory.h"
#include "harness/serve/server.h"

namespace assay::cli {
namespace {

struct Flags {
  std::string store;
  std::string durability = "power";
  std::vector<std::string> settings;
  std::string root;
  std::string socket;
  bool as_json = false;
  // Of a child of adapters/served.
  std::uint64_t parent = 0;
  std::string data;
  std::string keys = "bytes";
  std::uint64_t memory_bytes = OpenOptions{}.memory_bytes;
  std::uint64_t expected_bytes = 0;
  std::uint64_t value_bytes = 0;
  bool existing = false;
};

Result<OpenOptions> open_options(const Flags& flags) {
  const Result<DurabilityClass> durability = parse_durability(flags.durability);
  if (!durability) return std::unexpected(durability.error());
  const Result<Settings> settings = parse_set_flags(flags.settings);
  if (!settings) return std::unexpected(settings.error());
  OpenOptions options;
  options.durability = *durability;
  options.settings = *settings;
  options.create = !flags.existing;
  options.key_kind = flags.keys == "u64" ? KeyKind::u64 : KeyKind::bytes;
  options.memory_bytes = flags.memory_bytes;
  options.expected_bytes = flags.expected_bytes;
  options.value_bytes = flags.value_bytes;
  return options;
}

void print_telemetry(const nlohmann::json& all) {
  const auto us = [](const nlohmann::json& ns) {
    return fmt::format("{:.1f}", ns.get<double>() / 1e3);
  };
  std::vector<std::vector<std::string>> rows{
      {"COMMAND", "COUNT", "FAILED", "MEAN us", "P50 us", "P99 us", "P99.9 us", "MAX us"}};
  for (const nlohmann::json& one : all.at("commands")) {
    rows.push_back({one.at("command").get<std::string>(), one.at("count").dump(),
                    one.at("failed").dump(), us(one.at("mean_ns")), us(one.at("p50_ns")),
                    us(one.at("p99_ns")), us(one.at("p999_ns")), us(one.at("max_ns"))});
  }
  print_table(rows);
}

/// Serves until the end; `say_ready` is called once clients can connect. True: a client ended it.
template <class SayReady>
Result<bool> serve(const Flags& flags, const std::atomic<bool>& stop, Telemetry& telemetry,
                   SayReady&& say_ready) {
  Result<OpenOptions> options = open_options(flags);
  if (!options) return std::unexpected(options.error());
  const Result<const Driver*> driver = find_driver(flags.store);
  if (!driver) return std::unexpected(driver.error());
  ASSAY_TRY((*driver)->check_settings(*options, 0));
  const Result<ServeDirectory> directory = flags.data.empty()
                                               ? ServeDirectory::below(flags.root, flags.store)
                                               : ServeDirectory::given(flags.data);
  if (!directory) return std::unexpected(directory.error());
  options->directory = directory->data();
  const Result<std::unique_ptr<Store>> store = (*driver)->open(*options);
  if (!store) return std::unexpected(store.error());
  Result<std::unique_ptr<Server>> server = Server::listen(**store, flags.socket);
  if (!server) {
    (void)(*store)->close();
    return std::unexpected(server.error());
  }
  say_ready(**driver, options->directory);
  const Result<bool> ended = (*server)->run(stop);
  (*server)->add_telemetry(telemetry);
  server->reset();
  ASSAY_TRY((*store)->close());
  return ended;
}

Result<ExitStatus> serve_people(const Flags& flags) {
  if (flags.root.empty()) {
    return fail(Error(ErrorKind::bad_input, "--root is missing").hint("where to keep the store"));
  }
  const StopOnSignal signals;
  Telemetry telemetry;
  const Result<bool> ended =
      serve(flags, signals.flag(), telemetry, [&](const Driver& driver, const std::string& where) {
        const std::string line =
            fmt::format("serving {} {} ({}) in {} at {}\n", driver.name(), driver.version(),
                        flags.durability, where, flags.socket);
        std::fputs(line.c_str(), flags.as_json ? stderr : stdout);
        std::fflush(flags.as_json ? stderr : stdout);
      });
  if (!ended) return std::unexpected(ended.error());
  if (flags.as_json) {
    nlohmann::json all = telemetry.json();
    all["schema"] = 1;
    print_json(all);
  } else {
    print_telemetry(telemetry.json());
  }
  return *ended ? ExitStatus::done : ExitStatus::interrupted;
}

/// Kills this process as soon as `parent`, which must be the one that started it, has ended. Not by
/// PR_SET_PDEATHSIG, which follows the thread that forked: a store may be opened by one thread and
/// used by another that lives longer.
Status die_with(pid_t parent) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, parent, 0U));
  if (handle < 0 && errno != ESRCH) {
    return fail(system_error("cannot watch the process that opened the store", errno));
  }
  if (handle < 0 || ::getppid() != parent) ::_exit(static_cast<int>(ExitStatus::interrupted));
  std::thread([handle] {
    pollfd ended{.fd = handle, .events = POLLIN, .revents = 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
    ::kill(::getpid(), SIGKILL);
  }).detach();
  return {};
}

Result<ExitStatus> serve_parent(const Flags& flags) {
  ASSAY_TRY(die_with(static_cast<pid_t>(flags.parent)));
  // A key that is pressed is for the parent, which ends its child when it is done with it.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  served::Channel channel(STDOUT_FILENO);
  std::string frame;
  const std::atomic<bool> never{false};
  Telemetry telemetry;
  const auto say_done = [&](auto&&...) {
    frame.clear();
    Status said = served::encode_answer(served::Answer::done, {}, frame);
    if (said) said = channel.send(frame);
    (void)said;  // a parent that is gone has nothing to hear
  };
  const Result<bool> ended = serve(flags, never, telemetry, say_done);
  if (ended) {
    say_done();
    return ExitStatus::done;
  }
  frame.clear();
  served::encode_error(ended.error(), frame);
  (void)channel.send(frame);
  ::_exit(static_cast<int>(exit_status(ended.error().kind())));
}

}  // namespace

void add_serve(CLI::App& app, Invocation& invocation) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("serve", "Serve a store on a Unix socket");
  verb->add_option("store", flags->store, "A store of `assay store list`, or a plug-in's path")
      ->required();
  verb->add_option("--durability", flags->durability, "Durability class")->capture_default_str();
  verb->add_option("--set", flags->settings, "A setting, name=value; may be repeated")
      ->expected(1)
      ->take_all();
  verb->add_option("--root", flags->root,
                   "Where to make (or go on with) assay-served-STORE/, which holds the store");
  verb->add_option("--socket", flags->socket, "The socket's path, or @name for one without a file")
      ->required();
  verb->add_flag("--json", flags->as_json, "Print the telemetry at the end as JSON");
  const std::string hidden;
  verb->add_option("--child", flags->parent, "")->group(hidden);
  verb->add_option("--data", flags->data, "")->group(hidden);
  verb->add_option("--keys", flags->keys, "")->group(hidden);
  verb->add_option("--memory-bytes", flags->memory_bytes, "")->group(hidden);
  verb->add_option("--expected-bytes", flags->expected_bytes, "")->group(hidden);
  verb->add_option("--value-bytes", flags->value_bytes, "")->group(hidden);
  verb->add_flag("--existing", flags->existing, "")->group(hidden);
  verb->callback([&invocation, flags] {
    invocation.action = [flags] {
      return flags->parent != 0 ? serve_parent(*flags) : serve_people(*flags);
    };
  });
}

}  // namespace assay::cli
