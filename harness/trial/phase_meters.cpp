#include "harness/trial/phase_meters.h"

#include <nlohmann/json.hpp>

#include "harness/measure/barriers.h"
#include "harness/measure/block_device.h"
#include "harness/measure/process_counters.h"
#include "harness/trial/worker_request.h"

namespace assay {
namespace {

template <class T>
struct Span {
  Result<T> before = fail(ErrorKind::internal, "not read yet");
  Result<T> after = fail(ErrorKind::internal, "not read yet");
  [[nodiscard]] bool known() const { return before && after; }
  [[nodiscard]] T difference() const { return *after - *before; }
  /// Begins a further interval: `before` is moved back by what was counted so far.
  void begin(Result<T> now) {
    if (known() && now) now = *now - difference();
    if (!begun_ || known()) before = std::move(now);
    begun_ = true;
  }
  [[nodiscard]] nlohmann::json why() const {
    return unknown_figure((before ? after : before).error().message());
  }

 private:
  bool begun_ = false;
};

}  // namespace

struct PhaseMeters::Readings {
  explicit Readings(Result<BlockDevice> watched) : device(std::move(watched)) {}

  Result<BlockDevice> device;
  Span<ProcessCounters> process;
  Span<BarrierCounts> barriers;
  Span<BlockCounters> block;
  Result<MachineCpu> machine = fail(ErrorKind::internal, "not read yet");
  Result<ForeignCpu> foreign = ForeignCpu{};
  Result<MemoryUse> memory = fail(ErrorKind::internal, "not read yet");
  Status peak_reset;
  std::string elsewhere;

  Result<BlockCounters> read_block() const {
    if (!device) return fail(device.error());
    return device->read();
  }
};

PhaseMeters::PhaseMeters(const std::string& directory, std::string_view elsewhere)
    : readings_(std::make_unique<Readings>(BlockDevice::of(directory))) {
  readings_->elsewhere = elsewhere;
}

PhaseMeters::~PhaseMeters() = default;

void PhaseMeters::begin() {
  Readings& r = *readings_;
  r.peak_reset = reset_peak_memory();
  r.machine = machine_cpu();
  r.block.begin(r.read_block());
  if (!r.elsewhere.empty()) {
    r.barriers.begin(fail(ErrorKind::environment, r.elsewhere));
    r.process.begin(fail(ErrorKind::environment, r.elsewhere));
    return;
  }
  r.barriers.begin(barrier_counts());
  r.process.begin(process_counters());
}

void PhaseMeters::end() {
  Readings& r = *readings_;
  if (!r.elsewhere.empty()) {
    r.block.after = r.read_block();
    // What the store uses would be counted as foreign.
    r.foreign = fail(ErrorKind::environment, r.elsewhere);
    r.memory = fail(ErrorKind::environment, r.elsewhere);
    return;
  }
  r.process.after = process_counters();
  r.barriers.after = barrier_counts();
  r.block.after = r.read_block();
  const Result<MachineCpu> machine = machine_cpu();
  if (!r.machine) {
    r.foreign = fail(r.machine.error());
  } else if (!machine) {
    r.foreign = fail(machine.error());
  } else if (r.foreign) {
    const ForeignCpu used = foreign_cpu(*r.machine, *machine);
    r.foreign->all_ns += used.all_ns;
    r.foreign->user_ns += used.user_ns;
  }
  r.memory = memory_use();
}

void PhaseMeters::add_to(nlohmann::json& phase) const {
  const Readings& r = *readings_;
  nlohmann::json& io = phase["io"];
  if (r.process.known()) {
    const ProcessCounters used = r.process.difference();
    io["requested_write_bytes"] = used.requested_write_bytes;
    io["requested_read_bytes"] = used.requested_read_bytes;
    phase["cpu"] = {{"user_ns", used.user_ns}, {"system_ns", used.system_ns}};
    phase["faults"] = {{"minor", used.minor_faults}, {"major", used.major_faults}};
    phase["context_switches"] = {{"voluntary", used.voluntary_switches},
                                 {"involuntary", used.involuntary_switches}};
  } else {
    const nlohmann::json why = r.process.why();
    io["requested_write_bytes"] = io["requested_read_bytes"] = why;
    phase["cpu"] = {{"user_ns", why}, {"system_ns", why}};
    phase["faults"] = {{"minor", why}, {"major", why}};
    phase["context_switches"] = {{"voluntary", why}, {"involuntary", why}};
  }
  if (r.block.known()) {
    const BlockCounters used = r.block.difference();
    io["device_write_bytes"] = used.write_bytes;
    io["device_read_bytes"] = used.read_bytes;
    io["device_flushes"] = used.flushes
                               ? nlohmann::json(*used.flushes)
                               : unknown_figure("the kernel counts no flushes for this device");
  } else {
    io["device_write_bytes"] = io["device_read_bytes"] = io["device_flushes"] = r.block.why();
  }
  if (r.barriers.known()) {
    const BarrierCounts made = r.barriers.difference();
    phase["barriers"] = {{"fsync", made.fsync},
                         {"fdatasync", made.fdatasync},
                         {"msync", made.msync},
                         {"sync_file_range", made.sync_file_range},
                         {"dsync_writes", made.dsync_writes},
                         {"syncfs", made.syncfs}};
  } else {
    for (const char* name :
         {"fsync", "fdatasync", "msync", "sync_file_range", "dsync_writes", "syncfs"})
      phase["barriers"][name] = r.barriers.why();
  }
  const nlohmann::json no_foreign =
      r.foreign ? nlohmann::json() : unknown_figure(r.foreign.error().message());
  phase["cpu"]["foreign_ns"] = r.foreign ? nlohmann::json(r.foreign->all_ns) : no_foreign;
  phase["cpu"]["foreign_user_ns"] = r.foreign ? nlohmann::json(r.foreign->user_ns) : no_foreign;
  if (r.memory) {
    phase["rss"] = {{"peak_bytes", r.memory->peak_bytes}, {"final_bytes", r.memory->now_bytes}};
    // Without the reset the peak is that of the process so far, which is not the phase's.
    if (!r.peak_reset) phase["rss"]["peak_bytes"] = unknown_figure(r.peak_reset.error().message());
  } else {
    const nlohmann::json why = unknown_figure(r.memory.error().message());
    phase["rss"] = {{"peak_bytes", why}, {"final_bytes", why}};
  }
}

}  // namespace assay
