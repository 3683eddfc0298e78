// A training step as one line, in the form that the field expects:
//
//   step 120/200  loss 2.3412  val 2.4000  grad_norm 0.83  lr 2.1e-04
//   12.3k tok/s  MFU 41.2%  mem 1.2 GiB  ETA 0:42          (all on one line)
#ifndef TROUPE_CLIENTS_CLI_VIEW_STEP_LINE_H_
#define TROUPE_CLIENTS_CLI_VIEW_STEP_LINE_H_

#include <cstdint>
#include <string>

#include "proto/status.pb.h"

namespace troupe {

struct StepProgress {
  int64_t steps_total = 0;
  double eta_seconds = -1;  // below 0: not known
};

// For a pipe: every field, but gradient norm and learning rate where both are
// zero, as nothing is trained; the step after a checkpoint has one more, for
// how long training stood still for it: "checkpoint 0.31 s"; and so has one on
// a machine that is no longer as it was calibrated: "machine 12 % slower (8 %
// stolen)"; and one for each tier of memory that anything moved to or from,
// with the bytes of all ranks and how long training had to wait for them:
// "nvme 2.4 GiB 2.31 GB/s, waited 120 ms".
std::string StepLine(const StepRecord& record, const StepProgress& progress);

// For a terminal: a bar, then as many fields as fit into `width` columns, the
// ones that matter most first. Never wider than `width`.
std::string ProgressLine(const StepRecord& record, const StepProgress& progress,
                         int width);

// Seconds until the end, from the steps seen so far.
class StepClock {
 public:
  void Add(const StepRecord& record);
  double EtaSeconds(int64_t steps_total) const;  // below 0: no step yet

 private:
  double step_seconds_ = 0;  // smoothed
  int64_t steps_seen_ = 0;
  int64_t step_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_STEP_LINE_H_
