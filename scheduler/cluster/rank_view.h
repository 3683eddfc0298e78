// What a rank does now, from what it said of itself last, and in words.
#ifndef TROUPE_SCHEDULER_CLUSTER_RANK_VIEW_H_
#define TROUPE_SCHEDULER_CLUSTER_RANK_VIEW_H_

#include <string>

#include "absl/time/time.h"
#include "proto/plan/lanes.h"
#include "proto/worker.pb.h"

namespace troupe {

// What is known of a rank.
struct RankReport {
  std::string worker_name;
  absl::Time heard;
  RankProgress progress;  // as it was then
  absl::Time disk_moved;  // when its disk was last seen to get on
};

struct RankView {
  enum State {
    kSilent,   // it has not been heard for long
    kBetween,  // it runs no program
    kAlone,    // it is in an instruction that needs nobody else
    kMeets,    // it is in a transfer or a collective
  };
  State state = kBetween;
  const LaneProgress* lane = nullptr;  // of that instruction
  absl::Duration time;                 // that it has done so for
  absl::Duration age;                  // of the report
};

struct ViewOptions {
  absl::Time now;
  absl::Duration silent_after;  // since it was heard
};

// Refers to the report. `lanes` are the plan's.
RankView ViewOf(const RankReport& report, const Lanes& lanes,
                const ViewOptions& options);

// A rank with which a chain of waits ends: "rank 4 has been in FORWARD u6 m3
// for 31 s (worker-4)".
std::string EndWords(int rank, const RankReport& report, const RankView& view);

// Whether a disk has given or taken bytes between two reports of a rank.
bool DiskGotOn(const RankProgress& before, const RankProgress& after);

// "34 s", "2.1 s", "0.012 s".
std::string SecondsWords(absl::Duration time);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RANK_VIEW_H_
