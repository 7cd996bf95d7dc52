// What a lane's second process does: it puts file system and store on the lane's disk, performs a
// history while the disk records, and opens what cuts left.
//
// Next to the store's directory lies a file of the harness, the canary: it is written and flushed
// before the history begins and again after its end. A disk that honours flushes has it in every
// crash state of that time; one that has not says nothing about the store.
// In every other history the kernel is made to write files' data back in the middle of things, as
// it does by itself on a machine that has been up for longer.
// The process has one thread.
#pragma once

#include <string>

#include "harness/qualify/block/lane.h"

namespace assay::qualify::block {

/// Serves `conversation` (lines of JSON) until it ends. The disk is mounted at `directory`/disk by
/// the process at the other end of `control`.
void run_lane(const LanePlan& plan, SharedDisk& disk, const std::string& directory, int control,
              int conversation);

}  // namespace assay::qualify::block
