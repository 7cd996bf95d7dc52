#include "harness/qualify/rot/damage.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace assay::qualify::rot {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSector = 512;

struct Place {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Sectors that hold anything, in an order that does not depend on the file system's.
std::vector<Place> places_of(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code code;
  for (fs::recursive_directory_iterator at(directory, code), end; !code && at != end;
       at.increment(code))
    if (at->is_regular_file(code) && !at->is_symlink(code))
      files.push_back(at->path().lexically_relative(directory).string());
  std::ranges::sort(files);
  std::vector<Place> places;
  for (const std::string& file : files) {
    const std::string bytes = content_of(directory + "/" + file);
    for (std::uint64_t offset = 0; offset < bytes.size(); offset += kSector) {
      const std::string_view sector = std::string_view(bytes).substr(offset, kSector);
      if (std::ranges::any_of(sector, [](char byte) { return byte != '\0'; }))
        places.push_back({file, offset, sector.size()});
    }
  }
  return places;
}

Status put(const std::string& path, std::uint64_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.flush();
  if (!file)
    return fail(Error(ErrorKind::environment, "cannot damage a copy of a store's file").at(path));
  return {};
}

std::string part_of(const std::string& path, std::uint64_t offset, std::uint64_t bytes) {
  const std::string all = content_of(path);
  return offset >= all.size() ? std::string() : all.substr(offset, bytes);
}

}  // namespace

std::string_view to_string(DamageKind kind) {
  switch (kind) {
    case DamageKind::bit:
      return "a flipped bit";
    case DamageKind::zeroed_sector:
      return "a zeroed sector";
    case DamageKind::swapped_sectors:
      return "two swapped sectors";
    case DamageKind::cut_end:
      return "a cut end";
  }
  return "a flipped bit";
}

std::string Damage::text() const {
  std::string text = fmt::format("{} at byte {} of {}", to_string(kind), offset, file);
  if (kind == DamageKind::swapped_sectors) text += fmt::format(" (the other at byte {})", other);
  return text;
}

Result<std::optional<Damage>> do_damage(const std::string& directory, DamageKind kind,
                                        std::mt19937_64& random) {
  const std::vector<Place> places = places_of(directory);
  if (places.empty()) return std::optional<Damage>();
  const Place& place = places[random() % places.size()];
  const std::string path = directory + "/" + place.file;
  Damage damage{kind, place.file, place.offset, part_of(path, place.offset, place.bytes), {}, 0};
  if (kind == DamageKind::cut_end) {
    std::error_code code;
    fs::resize_file(path, place.offset, code);
    if (code) return fail(ErrorKind::environment, "cannot cut a file: " + code.message());
    return std::optional(std::move(damage));
  }
  if (kind == DamageKind::bit) {
    const std::uint64_t byte = random() % place.bytes;
    damage.offset += byte;
    damage.before = damage.before.substr(byte, 1);
    damage.after = damage.before;
    damage.after[0] = static_cast<char>(damage.after[0] ^ (1 << random() % 8));
  } else if (kind == DamageKind::zeroed_sector) {
    damage.after.assign(damage.before.size(), '\0');
  } else {
    std::vector<Place> others;
    std::ranges::copy_if(places, std::back_inserter(others), [&](const Place& one) {
      return one.file == place.file && one.offset != place.offset && one.bytes == place.bytes;
    });
    if (others.empty()) return std::optional<Damage>();
    damage.other = others[random() % others.size()].offset;
    damage.after = part_of(path, damage.other, place.bytes);
    if (damage.after == damage.before) return std::optional<Damage>();
    ASSAY_TRY(put(path, damage.other, damage.before));
  }
  ASSAY_TRY(put(path, damage.offset, damage.after));
  return std::optional(std::move(damage));
}

bool is_repaired(const std::string& directory, const Damage& damage) {
  const std::string path = directory + "/" + damage.file;
  return part_of(path, damage.offset, damage.before.size()) == damage.before &&
         (damage.kind != DamageKind::swapped_sectors ||
          part_of(path, damage.other, damage.after.size()) == damage.after);
}

}  // namespace assay::qualify::rot
