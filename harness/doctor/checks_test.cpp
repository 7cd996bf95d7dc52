#include "harness/doctor/checks.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "adapters/temporary_directory.h"

namespace assay::doctor {
namespace {

namespace fs = std::filesystem;

/// A machine made of files.
class Doctor : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root() + path).parent_path());
    std::ofstream(root() + path) << text;
  }
  const std::string& root() const { return directory_.path(); }

  void put_well_set_machine() const {
    put("/proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\n");
    put("/proc/loadavg", "0.10 0.2 0.3 1/100 4242\n");
    put("/proc/meminfo",
        "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\nSwapTotal: 10 kB\nSwapFree: 10 kB\n");
    put("/proc/self/cgroup", "0::/group\n");
    put("/proc/stat", "cpu  10 0 10 1000 0 0 0 0 0 0\ncpu0 1 1 1 1\n");
    put("/proc/sys/kernel/randomize_va_space", "2\n");
    put("/proc/sys/vm/dirty_background_ratio", "10\n");
    put("/proc/sys/vm/dirty_ratio", "20\n");
    put("/proc/sys/vm/dirty_background_bytes", "0\n");
    put("/proc/sys/vm/dirty_bytes", "0\n");
    put("/proc/sys/vm/nr_hugepages", "0\n");
    put("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    put("/sys/devices/system/cpu/smt/control", "off\n");
    for (const char* cpu : {"cpu0", "cpu1"}) {
      const std::string folder = std::string("/sys/devices/system/cpu/") + cpu;
      put(folder + "/cpufreq/scaling_governor", "performance\n");
      put(folder + "/thermal_throttle/core_throttle_count", "0\n");
    }
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    put("/sys/fs/cgroup/group/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/group/memory.max", "max\n");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  }

  std::vector<Finding> look(const std::vector<std::string>& demanded = {}) const {
    Options options;
    options.benchmark_root = root();
    options.system_root = root();
    options.watch = std::chrono::milliseconds(1);
    options.demanded = demanded;
    return examine(options);
  }

  Finding found(const std::string& id) const {
    for (const Finding& finding : look()) {
      if (finding.id == id) return finding;
    }
    ADD_FAILURE() << "no item " << id;
    return {};
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(Doctor, finds_a_well_set_machine_fine) {
  put_well_set_machine();
  for (const Finding& finding : look()) {
    // The device and the file system of this directory are the real ones.
    if (finding.id == "scheduler" || finding.id == "write_cache" || finding.id == "free_disk" ||
        finding.id == "background_writers") {
      continue;
    }
    EXPECT_EQ(finding.state, State::fine) << finding.id << ": " << finding.found;
    EXPECT_TRUE(finding.remedies.empty()) << finding.id;
  }
}

TEST_F(Doctor, names_each_item_once_and_says_of_each_why_and_how) {
  put_well_set_machine();
  const std::vector<Finding> findings = look();
  const std::vector<std::string> ids = check_ids();
  ASSERT_EQ(findings.size(), ids.size());
  for (const Finding& finding : findings) {
    EXPECT_EQ(std::ranges::count(ids, finding.id), 1) << finding.id;
    for (const std::string* text :
         {&finding.title, &finding.found, &finding.wanted, &finding.why}) {
      EXPECT_FALSE(text->empty()) << finding.id;
    }
  }
}

TEST_F(Doctor, tells_an_empty_machine_unknown_and_never_fine) {
  for (const Finding& finding : look()) {
    if (finding.id == "numa_balancing" || finding.id == "free_disk") continue;
    EXPECT_EQ(finding.state, State::unknown) << finding.id << ": " << finding.found;
  }
}

struct Ill {
  const char* id;
  const char* path;
  const char* text;
  const char* found;
  const char* remedy;  ///< "path=value", or empty
};

class DoctorOfOneFile : public Doctor, public ::testing::WithParamInterface<Ill> {};

TEST_P(DoctorOfOneFile, sees_what_differs_and_how_to_set_it) {
  put_well_set_machine();
  put(GetParam().path, GetParam().text);
  const Finding finding = found(GetParam().id);
  EXPECT_EQ(finding.state, State::differs);
  EXPECT_NE(finding.found.find(GetParam().found), std::string::npos) << finding.found;
  const std::string remedy = finding.remedies.empty()
                                 ? std::string()
                                 : finding.remedies[0].path + "=" + finding.remedies[0].value;
  EXPECT_EQ(remedy, GetParam().remedy);
}

INSTANTIATE_TEST_SUITE_P(
    Items, DoctorOfOneFile,
    ::testing::Values(
        Ill{"governor", "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n",
            "powersave on 1 CPU",
            "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor=performance"},
        Ill{"turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n", "on",
            "/sys/devices/system/cpu/intel_pstate/no_turbo=1"},
        Ill{"smt", "/sys/devices/system/cpu/smt/control", "on\n", "on",
            "/sys/devices/system/cpu/smt/control=off"},
        Ill{"throttling", "/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count",
            "7\n", "7 events", ""},
        Ill{"clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet\n", "hpet", ""},
        Ill{"aslr", "/proc/sys/kernel/randomize_va_space", "0\n", "0",
            "/proc/sys/kernel/randomize_va_space=2"},
        Ill{"load", "/proc/loadavg", "3.51 2 1 1/100 1\n", "3.51", ""},
        Ill{"cpu_limit", "/sys/fs/cgroup/group/cpu.max", "50000 100000\n", "50000", ""},
        Ill{"memory_limit", "/sys/fs/cgroup/group/memory.max", "1073741824\n", "1073741824", ""},
        Ill{"free_memory", "/proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 524288 kB\n",
            "0.5 GiB", ""},
        Ill{"swap", "/proc/meminfo", "SwapTotal: 4194304 kB\nSwapFree: 2097152 kB\n", "2.0 GiB",
            ""},
        Ill{"thp", "/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n",
            "always", "/sys/kernel/mm/transparent_hugepage/enabled=madvise"},
        Ill{"huge_pages", "/proc/sys/vm/nr_hugepages", "512\n", "512", ""},
        Ill{"numa_balancing", "/proc/sys/kernel/numa_balancing", "1\n", "1",
            "/proc/sys/kernel/numa_balancing=0"},
        Ill{"dirty_limits", "/proc/sys/vm/dirty_ratio", "60\n", "60 % at most",
            "/proc/sys/vm/dirty_background_ratio=10"}),
    [](const ::testing::TestParamInfo<Ill>& given) { return std::string(given.param.id); });

TEST_F(Doctor, offers_no_remedy_that_could_not_be_put_back) {
  put_well_set_machine();
  put("/proc/sys/vm/dirty_ratio", "0\n");
  put("/proc/sys/vm/dirty_bytes", "123456\n");
  const Finding finding = found("dirty_limits");
  EXPECT_EQ(finding.state, State::differs);
  EXPECT_NE(finding.found.find("123456 B at most"), std::string::npos) << finding.found;
  EXPECT_TRUE(finding.remedies.empty());
}

TEST_F(Doctor, reads_the_limits_of_control_groups_of_version_1) {
  put_well_set_machine();
  put("/proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/c\n");
  put("/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(found("cpu_limit").state, State::fine);
  EXPECT_EQ(found("memory_limit").state, State::fine);
  put("/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n");
  put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(found("cpu_limit").state, State::differs);
  EXPECT_EQ(found("memory_limit").state, State::differs);
}

TEST_F(Doctor, counts_only_demanded_items_as_unmet) {
  put_well_set_machine();
  put("/proc/sys/vm/nr_hugepages", "512\n");
  put("/sys/devices/system/cpu/smt/control", "on\n");
  EXPECT_TRUE(unmet_demands(look()).empty());
  EXPECT_TRUE(unmet_demands(look({"thp"})).empty());
  const std::vector<Finding> unmet = unmet_demands(look({"smt", "thp"}));
  ASSERT_EQ(unmet.size(), 1U);
  EXPECT_EQ(unmet[0].id, "smt");
  EXPECT_TRUE(to_json(unmet)[0]["demanded"]);
}

TEST_F(Doctor, takes_a_demanded_item_that_it_cannot_see_as_unmet) {
  EXPECT_EQ(unmet_demands(look({"governor"})).size(), 1U);
}

}  // namespace
}  // namespace assay::doctor
