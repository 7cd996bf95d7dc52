#include "harness/provenance/provenance.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A machine made of files.
class FakeMachine : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  void put_whole_machine() const {
    put("/etc/os-release", "NAME=\"Any\"\nPRETTY_NAME=\"Any Linux 1\"\n");
    put("/proc/sys/kernel/osrelease", "6.1.0-9\n");
    put("/proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: Maker\nmodel\t\t: 85\nmodel name\t: Fast CPU @ 3 GHz\n"
        "physical id\t: 0\ncore id\t\t: 0\nflags\t\t: fpu hypervisor sse\n\n"
        "processor\t: 1\nmodel name\t: Fast CPU @ 3 GHz\nphysical id\t: 0\ncore id\t\t: 0\n");
    put("/proc/meminfo", "MemTotal:        8000000 kB\nMemAvailable:    4000000 kB\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    put("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    put("/sys/devices/system/cpu/cpu0/cache/index0/level", "1\n");
    put("/sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put("/proc/self/mountinfo",
        "20 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        "21 20 8:2 / " +
            root_ + " rw,noatime - xfs /dev/sda2 rw,attr2\n");
    const std::string disk = "/sys/devices/pci/block/sda";
    put(disk + "/device/model", "ACME 1000  \n");
    put(disk + "/size", "2048\n");
    put(disk + "/queue/scheduler", "none [mq-deadline]\n");
    put(disk + "/queue/write_cache", "write back\n");
    put(disk + "/queue/logical_block_size", "512\n");
    put(disk + "/queue/physical_block_size", "4096\n");
    put(disk + "/sda2/partition", "2\n");
    fs::create_directories(root_ + "/sys/dev/block");
    fs::create_directory_symlink(root_ + disk + "/sda2", root_ + "/sys/dev/block/8:2");
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    put("/var/lib/dpkg/status",
        "Package: liblmdb0\nStatus: install ok installed\nVersion: 0.9.24-1\n\n"
        "Package: librocksdb7.8\nVersion: 7.8.3-2\n\nPackage: other\nVersion: 1\n");
  }

  [[nodiscard]] json collect() const {
    return collect_provenance({root_ + "/not/there/yet", {"assay", "run"}, root_, "8:2"});
  }

  const TemporaryDirectory own_;
  const std::string root_ = own_.path();
};

TEST_F(FakeMachine, is_described_by_its_files) {
  put_whole_machine();
  const json all = collect();
  EXPECT_EQ(all["os"]["name"], "Any Linux 1");
  EXPECT_EQ(all["os"]["kernel_release"], "6.1.0-9");
  EXPECT_EQ(all["cpu"]["model"], "Fast CPU @ 3 GHz");
  EXPECT_EQ(all["cpu"]["logical"], 2);
  EXPECT_EQ(all["cpu"]["cores"], 1);
  EXPECT_EQ(all["cpu"]["governor"], "performance");
  EXPECT_EQ(all["cpu"]["turbo"], "off");
  EXPECT_EQ(all["cpu"]["caches"][0]["size"], "32K");
  EXPECT_EQ(all["memory"]["total_bytes"], 8192000000);
  EXPECT_EQ(all["memory"]["transparent_hugepages"], "madvise");
  EXPECT_EQ(all["virtualisation"]["hypervisor"], true);
  EXPECT_EQ(all["clock"]["source"], "tsc");
  EXPECT_EQ(all["packages"]["liblmdb0"], "0.9.24-1");
  EXPECT_EQ(all["packages"]["librocksdb7.8"], "7.8.3-2");
  EXPECT_FALSE(all["packages"].contains("other"));
  EXPECT_EQ(all["process"]["command_line"], (json{"assay", "run"}));
}

TEST_F(FakeMachine, shows_the_disk_behind_a_partition_and_the_nearest_mount) {
  put_whole_machine();
  const json storage = collect()["storage"];
  EXPECT_EQ(storage["file_system"]["type"], "xfs");
  EXPECT_EQ(storage["file_system"]["mount_options"], "rw,noatime");
  EXPECT_EQ(storage["device"]["name"], "sda");
  EXPECT_EQ(storage["device"]["partition"], "sda2");
  EXPECT_EQ(storage["device"]["model"], "ACME 1000");
  EXPECT_EQ(storage["device"]["size_bytes"], 2048 * 512);
  EXPECT_EQ(storage["device"]["scheduler"], "mq-deadline");
  EXPECT_EQ(storage["device"]["write_cache"], "write back");
  EXPECT_EQ(storage["device"]["physical_block_bytes"], 4096);
}

TEST_F(FakeMachine, without_any_file_is_unknown_item_by_item) {
  const json all = collect();
  for (const char* pointer :
       {"/os/name", "/os/kernel_release", "/cpu/model", "/cpu/caches", "/cpu/governor",
        "/cpu/turbo", "/memory/total_bytes", "/cgroup", "/storage/file_system", "/storage/device",
        "/clock/source", "/packages"}) {
    const json& item = all.at(json::json_pointer(pointer));
    ASSERT_TRUE(item.is_object() && item.contains("unknown")) << pointer << ": " << item.dump();
    EXPECT_FALSE(item["unknown"].get<std::string>().empty()) << pointer;
  }
}

TEST_F(FakeMachine, tells_the_boot_parameters_without_what_is_handed_to_init) {
  put_whole_machine();
  put("/proc/cmdline", "quiet mitigations=auto -- --token 42\n");
  EXPECT_EQ(collect()["os"]["boot_parameters"], "quiet mitigations=auto");
}

TEST_F(FakeMachine, keeps_its_fingerprint_over_a_boot) {
  put_whole_machine();
  const json before = collect();
  put("/proc/sys/kernel/random/boot_id", "another\n");
  put("/proc/loadavg", "9.0 9.0 9.0 1/2 3\n");
  put("/proc/meminfo", "MemTotal:        8000100 kB\nMemAvailable:    1000 kB\n");
  put("/proc/cmdline", "quiet\n");
  EXPECT_EQ(collect()["fingerprint"], before["fingerprint"]);
}

TEST_F(FakeMachine, changes_its_fingerprint_with_cpu_kernel_memory_file_system_or_device) {
  put_whole_machine();
  const std::string before = collect()["fingerprint"];
  const std::pair<std::string, std::string> changes[] = {
      {"/proc/cpuinfo", "processor\t: 0\nmodel name\t: Slow CPU\n"},
      {"/proc/sys/kernel/osrelease", "6.2.0\n"},
      {"/proc/meminfo", "MemTotal:        16000000 kB\n"},
      {"/proc/self/mountinfo", "20 1 8:2 / / rw - btrfs /dev/sda2 rw\n"},
      {"/sys/devices/pci/block/sda/device/model", "OTHER\n"}};
  for (const auto& [path, text] : changes) {
    fs::remove_all(root_);
    put_whole_machine();
    put(path, text);
    EXPECT_NE(collect()["fingerprint"], before) << path;
  }
}

TEST(Provenance, of_this_process_names_source_build_binary_and_libraries) {
  const json all = collect_provenance({fs::temp_directory_path().string(), {}, "/", ""});
  EXPECT_EQ(all["binary"]["sha256"], sha256_file("/proc/self/exe").value());
  EXPECT_TRUE(all["source"].contains("commit"));
  EXPECT_TRUE(all["source"].contains("dirty"));
  EXPECT_FALSE(all["build"]["compiler"].get<std::string>().empty());
  bool libc = false;
  for (const auto& [path, digest] : all["libraries"].items()) {
    libc = libc || path.find("libc.so") != std::string::npos;
    EXPECT_EQ(digest.get<std::string>().size(), 64U) << path;
  }
  EXPECT_TRUE(libc);
  EXPECT_TRUE(all["storage"]["file_system"].contains("type"));
}

}  // namespace
}  // namespace assay
