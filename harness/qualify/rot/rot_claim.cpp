#include "harness/qualify/rot/rot_claim.h"

namespace assay::qualify::rot {

RotClaim rot_claim_of(const std::string& store, const Settings& settings_in_force) {
  const auto is = [&](const char* name, const char* value) {
    const auto found = settings_in_force.find(name);
    return found != settings_in_force.end() && found->second == value;
  };
  if (store == "sqlite")
    return {false, Loss::unopenable,
            "sqlite.org/cksumvfs.html: pages have checksums only with that extension"};
  if (store == "lmdb")
    return {false, Loss::unopenable, "its pages have no checksum (mdb.c, struct MDB_page)"};
  if (store == "rocksdb")
    return {true, is("wal_recovery_mode", "absolute") ? Loss::intact : Loss::suffix,
            "ReadOptions::verify_checksums is on by default; by WALRecoveryMode the log ends where "
            "it is damaged (include/rocksdb/options.h)"};
  if (store == "lode")
    return {true, Loss::suffix,
            "engine/PROTOCOLS.md: damage of the log's last frames, with nothing intact behind it, "
            "looks like a write that never finished"};
  if (store == "raw-file")
    return {true, Loss::suffix,
            "adapters/raw_file_log.h: the log ends where its chain of checksums does"};
  if (is("checksums", "on")) return {true, Loss::intact, "its setting checksums=on"};
  return {false, Loss::unopenable, "no setting of it claims checksums"};
}

}  // namespace assay::qualify::rot
