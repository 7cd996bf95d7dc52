// The file system and the device that the trials write to.
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "harness/provenance/system_files.h"

namespace assay::provenance {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// The benchmark root, or the nearest folder above it that is there.
std::string existing_folder(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::absolute(path, error);
  while (!folder.empty() && !fs::exists(folder, error) && folder != folder.root_path()) {
    folder = folder.parent_path();
  }
  return folder.empty() ? "/" : folder.string();
}

std::string unescaped(const std::string& field) {  // mountinfo writes blanks as \040
  std::string text;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size()) {
      text += static_cast<char>(std::stoi(field.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      text += field[i];
    }
  }
  return text;
}

bool is_below(const std::string& path, const std::string& mount_point) {
  if (mount_point == "/") return true;
  return path == mount_point || path.starts_with(mount_point + "/");
}

/// The mount that holds `folder`: the last of the longest mount points (later mounts cover).
json mount_of(const SystemFiles& files, const std::string& folder) {
  json best = unknown("/proc/self/mountinfo names no mount of this folder");
  std::size_t longest = 0;
  for (const std::string& line : files.lines("/proc/self/mountinfo")) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash));
    std::istringstream after(line.substr(dash + 3));
    std::string id, parent, number, root, point, options, type, source, super_options;
    before >> id >> parent >> number >> root >> point >> options;
    after >> type >> source >> super_options;
    point = unescaped(point);
    if (!is_below(folder, point) || point.size() < longest) continue;
    longest = point.size();
    best = {{"type", type},
            {"mount_point", point},
            {"mount_options", options},
            {"super_options", super_options},
            {"source", unescaped(source)},
            {"device_number", number}};
  }
  return best;
}

json describe_disk(const SystemFiles& files, const std::string& device_number) {
  const std::string link = "/sys/dev/block/" + device_number;
  std::error_code error;
  const fs::path target = fs::canonical(files.at(link), error);
  if (error) return unknown(fmt::format("no block device {} (not backed by one?)", device_number));
  // A partition's folder lies inside its disk's folder.
  const bool partition = fs::exists(target / "partition", error);
  const fs::path disk = partition ? target.parent_path() : target;
  const SystemFiles here(disk.string());
  json model = here.text_or_unknown("/device/model");
  if (model.is_object()) model = unknown("the device tells no model (virtual?)");
  json firmware = here.text_or_unknown("/device/firmware_rev");
  if (firmware.is_object()) firmware = here.text_or_unknown("/device/rev");
  if (firmware.is_object()) firmware = unknown("the device tells no firmware revision");
  const json sectors = here.integer_or_unknown("/size");
  return {{"name", disk.filename().string()},
          {"partition", partition ? json(target.filename().string()) : json("whole disk")},
          {"model", model},
          {"firmware", firmware},
          {"size_bytes", sectors.is_number() ? json(sectors.get<std::int64_t>() * 512) : sectors},
          {"scheduler", here.chosen_or_unknown("/queue/scheduler")},
          {"write_cache", here.text_or_unknown("/queue/write_cache")},
          {"fua", here.text_or_unknown("/queue/fua")},
          {"rotational", here.text_or_unknown("/queue/rotational")},
          {"logical_block_bytes", here.integer_or_unknown("/queue/logical_block_size")},
          {"physical_block_bytes", here.integer_or_unknown("/queue/physical_block_size")},
          {"queue_requests", here.integer_or_unknown("/queue/nr_requests")},
          {"read_ahead_kb", here.integer_or_unknown("/queue/read_ahead_kb")}};
}

json describe_space(const std::string& folder) {
  struct statvfs space{};
  if (::statvfs(folder.c_str(), &space) != 0) {
    return unknown("statvfs: " + std::generic_category().message(errno));
  }
  return {{"total_bytes", space.f_blocks * space.f_frsize},
          {"free_bytes", space.f_bavail * space.f_frsize},
          {"block_bytes", space.f_bsize}};
}

}  // namespace

json describe_storage(const SystemFiles& files, const std::string& benchmark_root,
                      std::string device_number) {
  const std::string folder = existing_folder(benchmark_root);
  if (device_number.empty()) {
    struct stat status{};
    if (::stat(folder.c_str(), &status) == 0) {
      device_number = fmt::format("{}:{}", major(status.st_dev), minor(status.st_dev));
    }
  }
  return {{"benchmark_root", benchmark_root},
          {"file_system", mount_of(files, folder)},
          {"device", describe_disk(files, device_number)},
          {"space", describe_space(folder)}};
}

}  // namespace assay::provenance
